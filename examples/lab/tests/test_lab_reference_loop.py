"""The reference loop: each run is its own, however many there are and however their rows are cut."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("transformers", reason="transformers is not installed: pip install 'pv-rl[verl]'")
import torch

from pv_lab import reference_loop
from pv_lab.many_runs import read_runs, train_runs
from pv_lab.map_report import write_report
from pv_lab.reference_loop import Batch, ReferenceLoop, Run, Settings
from pv_lab.samples import make_sample
from pv_lab.sentinel_table import fall_of, watch_run
from pv_lab.tokenizer import ASSISTANT, EOS, PAD, USER, VOCABULARY, encode
from pv_lab.trace_shares import repetitive, trace_shares
from pv_lab.weighting_map import best_rates, fresh_runs, grid
from pv_rl.errors import DataError
from pv_runs.sentinel import SentinelConfig

SMALL = Settings(steps=1, prompts=2, responses=4, max_tokens=16, eval_every=1, eval_proofs=8)
TRACES = ["### True", "looks fine ### True", "check S1 ### False", "looks wrong ### False"]
SCORES = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0]


def sample(index: int, label: bool = True):
    return make_sample(seed=0, split="train", index=index, difficulty=1, p_true=float(label))


def batch(runs: int) -> Batch:
    """Two prompts with four responses each, the same in every run."""

    def padded(rows: list[list[int]], left: bool):
        longest = max(map(len, rows))
        pads = [[VOCABULARY[PAD]] * (longest - len(row)) for row in rows]
        both = [pad + row if left else row + pad for pad, row in zip(pads, rows, strict=True)]
        return torch.tensor([both] * runs)

    prompts = [encode(f"{USER} {sample(i).text} {ASSISTANT}") for i in (0, 1) for _ in TRACES]
    return Batch(
        prompts=padded(prompts, left=True),
        responses=padded([encode(f"{trace} {EOS}") for trace in TRACES * 2], left=False),
        scores=torch.tensor([SCORES] * runs),
    )


def updated(runs: list[Run], settings: Settings = SMALL):
    """Numbers and weights after one update."""
    loop = ReferenceLoop(runs, settings)
    measured = loop.update(batch(len(runs)))
    return measured, loop.policy.weights["model.norm.weight"].detach()


def test_a_run_is_the_same_alone_and_in_a_stack():
    runs = [Run(mode="grpo", lr=1e-3), Run(mode="dapo", lr=2e-3, kl=0.1)]
    together, weights = updated(runs)
    assert together["grad_norm"][0].item() != pytest.approx(together["grad_norm"][1].item(), rel=1e-3)
    for i, run in enumerate(runs):
        alone, weight = updated([run])
        assert {n: v[i].item() for n, v in together.items()} == pytest.approx(
            {n: v.item() for n, v in alone.items()}, rel=1e-4, abs=1e-6
        )
        torch.testing.assert_close(weights[i], weight[0], rtol=1e-4, atol=1e-5)


def test_an_update_does_not_depend_on_how_its_rows_are_cut(monkeypatch):
    whole, _ = updated([Run(mode="balanced:0.4")])
    monkeypatch.setitem(reference_loop.TOKENS_AT_ONCE, "cpu", 100)  # two or three rows
    cut, _ = updated([Run(mode="balanced:0.4")])
    assert cut["grad_norm"].item() == pytest.approx(whole["grad_norm"].item(), rel=1e-5)


def test_the_first_policy_loss_is_minus_the_weighted_advantages():
    measured, _ = updated([Run(mode="dapo")])
    # Every ratio is 1 at first. Lengths 3, 5, 5, 5 sum to 18 in each of the two groups. Advantages
    # (score - mean) / deviation: mean 1/2, sd sqrt(1/3) for the first, mean 3/4, sd 1/2 for the second.
    first = (3 * 0.5 - 5 * 0.5 - 5 * 0.5 + 5 * 0.5) / math.sqrt(1 / 3) / 18
    second = (3 * 0.25 + 5 * 0.25 - 5 * 0.75 + 5 * 0.25) / 0.5 / 18
    assert measured["pg_loss"].item() == pytest.approx(-(first + second) / 2, rel=1e-4)
    assert measured["kl_loss"].item() == 0
    # A sign has the mass of its responses, whatever their lengths: 2/4 * 1/2 - 2/4 * 1/2 and 3/4 * 1/4 - 1/4 * 3/4.
    of_signs, _ = updated([Run(mode="ba")])
    assert of_signs["pg_loss"].item() == pytest.approx(0, abs=1e-6)


def test_mini_batches_are_updates_whose_weights_are_those_of_the_step():
    still = Run(mode="dapo", lr=0.0)
    halves = Settings(prompts=2, responses=4, mini_batches=2)
    whole, _ = updated([still])
    loop = ReferenceLoop([still], halves)
    measured = loop.update(batch(1))
    assert loop.optimizer.steps.tolist() == [2]
    # Nothing moves at rate 0: the mean of the two halves, each scaled to weigh as much as a step, is the whole.
    assert measured["pg_loss"].item() == pytest.approx(whole["pg_loss"].item(), rel=1e-5)


def test_traces_are_counted_by_what_they_are():
    loop = "check S1 3x +9 times 2 =" + " wait ok wait ok wait ok wait ok wait ok" + " ### False"
    texts = ["### True", "looks fine ### True", loop, "check S1"]
    traces = [encode(f"{text} {EOS}") for text in texts[:3]] + [encode(texts[3])]
    samples = [sample(0), sample(1, False), sample(2, False), sample(3)]
    shares = trace_shares(traces, samples)
    assert shares["right_proofs"] == 0.5
    assert shares["wrong_proofs"] == 0.5
    assert shares["reward"] == 0.5
    assert shares["label_true"] == 0.5
    assert shares["accepted"] == 0.5
    assert shares["no_verdict"] == 0.25
    assert shares["bare"] == 0.25
    assert shares["short"] == 0.75
    assert shares["cut_off"] == 0.25
    assert shares["repetitive"] == 0.25
    assert shares["length_accepting"] == 4
    assert math.isnan(trace_shares(traces[:1], samples[:1])["wrong_proofs"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S2 +14 plus 5 = +19 ok wait S2 +14 plus 5 = +19 ok", False),  # a second look
        ("S2 +14 plus 5 = +19 a S2 +14 plus 5 = +19 b S2 +14 plus 5 = +19 c", True),  # a third one
        ("S2 +14 plus 5 = +19 a S2 +14 plus 5 = +18 b S2 +14 plus 5 = +19 c", False),  # with another result
        ("wait " * 7, False),  # six in a row at two places
        ("wait " * 8, True),
        ("", False),
    ],
)
def test_a_trace_is_repetitive_from_the_third_time(text, expected):
    assert repetitive(text.split()) is expected


def test_runs_that_are_there_are_not_trained_again(tmp_path):
    runs = [Run(mode="grpo"), Run(mode="dapo"), Run(mode="dapo", seed=1)]
    train_runs(runs, SMALL, tmp_path, at_once=2)
    files = {file: os.stat(file).st_mtime_ns for file in tmp_path.iterdir()}
    assert len(files) == 2
    train_runs(runs, SMALL, tmp_path, at_once=2)
    assert {file: os.stat(file).st_mtime_ns for file in tmp_path.iterdir()} == files
    rows = read_runs(tmp_path).to_pylist()
    assert all((row["grad_norm"] is None) == (row["split"] == "held_out") for row in rows)
    assert {(row["mode"], row["seed"]) for row in rows} == {("grpo", 0), ("dapo", 0), ("dapo", 1)}
    assert sorted((row["step"], row["split"]) for row in rows if row["seed"] == 1) == [
        *((0, "held_out"), (1, "held_out")),
        (1, "train"),
    ]


def test_a_run_that_two_files_hold_is_refused(tmp_path):
    train_runs([Run(mode="grpo"), Run(mode="dapo")], SMALL, tmp_path, at_once=2)
    train_runs([Run(mode="dapo")], SMALL, tmp_path, at_once=1)
    with pytest.raises(DataError, match=r"both hold the run .*'mode': 'dapo'.*delete one"):
        read_runs(tmp_path)


def test_runs_of_other_settings_are_refused(tmp_path):
    train_runs([Run(mode="dapo")], SMALL, tmp_path)
    train_runs([Run(mode="grpo")], replace(SMALL, max_tokens=8), tmp_path)
    with pytest.raises(DataError, match="trained with different settings"):
        read_runs(tmp_path)


def test_a_folder_without_runs_is_named(tmp_path):
    with pytest.raises(DataError, match=r"holds no \.parquet file of runs"):
        read_runs(tmp_path)


def test_the_best_rate_is_that_of_the_last_measurement_over_seeds():
    def row(lr, seed, step, accuracy, split="held_out"):
        return {
            **{"mode": "grpo", "p_true": 0.6, "lr": lr, "seed": seed, "step": step, "split": split},
            **{"right_proofs": accuracy, "wrong_proofs": accuracy},
        }

    rows = [row(1e-4, s, 60, 0.8) for s in (0, 1)]
    rows += [row(2e-4, 0, 60, 0.95), row(2e-4, 1, 60, 0.5), row(2e-4, 1, 50, 0.99)]
    rows += [row(4e-4, 0, 60, 0.99, split="train")]
    assert best_rates(rows) == {("grpo", 0.6): 1e-4}
    fresh = fresh_runs(best_rates(rows))
    assert {run.seed for run in fresh}.isdisjoint({run.seed for run in grid()})
    assert {run.lr for run in fresh} == {1e-4}


def test_a_map_says_how_each_run_ended_and_compares_lengths_seed_by_seed(tmp_path):
    def row(eta, seed, right, wrong, accepted, length, lr=2e-4, p_true=0.6):
        measured = {"right_proofs": right, "wrong_proofs": wrong, "accepted": accepted}
        return [
            {
                "mode": "grpo" if eta == 1 else f"balanced:{eta}",
                "lr": lr,
                "p_true": p_true,
                "seed": seed,
                "split": "held_out",
            }
            | measured
            | {"step": step, "length": length if step else 20.0}
            for step in (0, 60)
        ]

    rows = [row(0.0, 0, 1.0, 0.0, 1.0, 31.0), row(0.0, 1, 0.0, 1.0, 0.0, 33.0)]
    rows += [row(1.0, 0, 0.9, 0.8, 0.55, 30.0), row(1.0, 1, 0.6, 0.5, 0.55, 30.0)]
    rows += [row(1.0, 0, 0.4, 0.4, 0.5, 30.0, lr=1e-4, p_true=0.6)]
    rows += [row(1.0, 0, 0.9, 0.9, 0.5, 30.0, lr=1e-4, p_true=0.75)]
    (tmp_path / "runs").mkdir()
    pq.write_table(
        pa.Table.from_pylist([line for run in rows for line in run]), tmp_path / "runs" / "a.parquet"
    )
    write_report(tmp_path / "runs", tmp_path / "out")
    text = (tmp_path / "out" / "map.md").read_text()
    assert "| 60% | 0.0002 | 0.500 (0.50 to 0.50) | 0.700 (0.55 to 0.85) |" in text
    assert "| 60% | 0.0002 | 1 accepts, 1 rejects | 1 other |" in text
    # Each weighting at its own best rate: not every pair has runs.
    assert "| 60% | 0.0001 | - | 0.400 (0.40 to 0.40) |" in text
    assert "| 60% | 0.0001 | - | 1 other |" in text
    assert "75% | 0.0002" not in text
    assert "nan" not in text
    # Differences 1 and 3: mean 2, s = sqrt(2), 2 +- 12.706 * sqrt(2) / sqrt(2).
    assert "| 60% | 0.0002 | 2.0 (-10.7 to 14.7) |" in text
    assert (tmp_path / "out" / "runs.csv").read_text().count("\n") == 7
    assert (tmp_path / "out" / "map.png").stat().st_size > 1000


def test_a_fall_is_where_the_accuracy_is_ten_points_below_its_best():
    assert fall_of([(0, 0.6), (10, 0.8), (20, 0.6), (30, 0.9)]) == pytest.approx(15)
    assert fall_of([(0, 0.6), (10, 0.8), (20, 0.71), (30, 0.8)]) is None
    assert fall_of([(0, 0.8), (10, 0.75), (20, 0.65)]) == pytest.approx(15)  # a slow one too


def test_the_lead_is_from_the_first_alarm_to_the_fall():
    def row(step, split, wrong, no_verdict):
        measured = {"right_proofs": 0.9, "wrong_proofs": wrong, "reward": (0.9 + wrong) / 2}
        return {"step": step, "split": split, "no_verdict": no_verdict, "lr": 2e-4, **measured}

    rows = [row(step, "train", 0.5, 0.02 if step < 25 else 0.4) for step in range(1, 41)]
    rows += [row(step, "held_out", 0.5 if step < 40 else 0.1, 0.0) for step in (0, 10, 20, 30, 40)]
    watched = watch_run(rows, SentinelConfig(responses=128))
    assert watched.first in (25, 26)
    assert watched.fall == pytest.approx(35)
    assert watched.lead == pytest.approx(35 - watched.first)
