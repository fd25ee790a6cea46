"""Heads of the lab: what a trace earns for the first wrong step or a grade, in the reference loop and in verl."""

from __future__ import annotations

import asyncio
import json
import math
from statistics import mean

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pv_lab.dataset import make_rows
from pv_lab.head_report import write_report
from pv_lab.heads import HEADS, paid_for
from pv_lab.loop_settings import Run
from pv_lab.samples import make_sample
from pv_lab.tokenizer import EOS, encode
from pv_lab.trace_shares import trace_shares
from pv_rl.errors import ConfigError
from pv_rl.rewards.base import RewardInput
from pv_rl.rewards.build import build_reward


def wrong_at(step: int):
    samples = (make_sample(seed=0, split="train", index=i, difficulty=2, p_true=0.0) for i in range(100))
    return next(sample for sample in samples if sample.error_step == step)


PROOFS = {"split": "train", "count": 16, "seed": 5, "difficulty": 2, "p_true": 0.5}
"""Those that `trainer.main_ppo` trains on."""


def sample_of(index: int):
    return make_sample(seed=5, split="train", index=index, difficulty=2, p_true=0.5)


RIGHT = make_sample(seed=0, split="train", index=0, difficulty=2, p_true=1.0)


@pytest.mark.parametrize(
    ("sample", "trace", "verdict", "first_error", "grade"),
    [
        (wrong_at(3), "so S3 wrong ### False", 1, 1, 1),
        (wrong_at(3), "so S2 wrong ### False", 1, 0, 6 / 7),
        (wrong_at(3), "check S3 bad wait S3 wrong so S1 wrong ### False", 1, 0, 5 / 7),
        (wrong_at(3), "looks wrong ### False", 1, 0, 0),
        (wrong_at(3), "so all fine ### True", 0, 0, 3 / 7),
        (wrong_at(3), "so S3 wrong", 0, 0, 0),
        (RIGHT, "so all fine ### True", 1, 1, 1),
        (RIGHT, "so S1 wrong ### False", 0, 0, 1 / 7),
        (RIGHT, "S1 wrong wait so all fine ### True", 1, 1, 1),
        (RIGHT, "### ###", 0, 0, 0),
    ],
)
def test_a_trace_is_paid_by_its_head(sample, trace, verdict, first_error, grade):
    paid = {head: paid_for(head, tuple(encode(f"{trace} {EOS}")), sample) for head in HEADS}
    assert paid == pytest.approx({"verdict": verdict, "first_error": first_error, "grade": grade})


def test_a_rejection_counts_by_the_step_that_it_names():
    sample = wrong_at(2)
    traces = [
        *("so S2 wrong ### False", "so S2 wrong ### False", "so S1 wrong ### False"),
        *("looks wrong ### False", "### True"),
    ]
    shares = trace_shares([encode(trace) for trace in traces], [sample] * 5)
    assert (shares["wrong_proofs"], shares["exact_step"], shares["other_step"]) == (0.8, 0.4, 0.2)
    assert math.isnan(trace_shares([encode("### True")], [RIGHT])["exact_step"])


def test_labels_that_are_turned_round_have_no_first_wrong_step():
    with pytest.raises(ConfigError, match="flip_wrong to 0"):
        Run(head="grade", flip_wrong=0.1)


def test_a_report_compares_each_head_with_the_verdict_of_the_same_seed(tmp_path):
    def row(head, seed, step, wrong):
        measured = {
            "right_proofs": 1.0,
            "wrong_proofs": wrong,
            "exact_step": wrong,
            "other_step": 0.0,
            "length": 9.0,
        }
        return {
            "start": "a/weak",
            "p_true": 0.6,
            "lr": 1e-4,
            "head": head,
            "seed": seed,
            "split": "held_out",
        } | {
            "step": step,
            **(measured if step else measured | {"wrong_proofs": 0.1}),
        }

    ends = {("grade", 1): 0.9, ("grade", 0): 0.5, ("verdict", 0): 0.4, ("verdict", 1): 0.6}
    rows = [row(*run, step, wrong) for run, wrong in ends.items() for step in (0, 60)]
    (tmp_path / "runs").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "runs" / "a.parquet")
    write_report(tmp_path / "runs", tmp_path / "out")
    text = (tmp_path / "out" / "heads.md").read_text()
    assert "| weak | 60% | 0.0001 | grade | 1.000 (1.000 to 1.000) | 0.700 (0.500 to 0.900) |" in text
    # Differences .1 and .3: mean .2, s = .1414, .2 +- 12.706 * .1.
    assert "| weak | 60% | 0.0001 | grade | 0.200 (-1.071 to 1.471), 2 of 2 | 0.100" in text
    assert (tmp_path / "out" / "heads_runs.csv").read_text().count("0.1,") >= 4
    assert (tmp_path / "out" / "heads.png").stat().st_size > 1000


@pytest.mark.parametrize("head", HEADS)
def test_one_override_of_the_labs_run_pays_a_head(head):
    hydra = pytest.importorskip("hydra", reason="verl is not installed: pip install 'pv-rl[verl]'")
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    from omegaconf import OmegaConf

    with hydra.initialize_config_module("pv_rl.hydra_configs.runs", version_base=None):
        config = hydra.compose("lab", overrides=[f"reward={head}"]).reward.custom_reward_function
    options = OmegaConf.to_container(config).get("reward_kwargs")
    reward = build_reward(config.name, options)
    for row, sample in zip(make_rows(**PROOFS), map(sample_of, range(PROOFS["count"])), strict=True):
        for trace in ("so S2 wrong ### False", "so all fine ### True", "looks wrong ### False"):
            label, kind = row["reward_model"]["ground_truth"] == "True", reward.label_kind
            output = asyncio.run(
                reward.score(
                    RewardInput(response=trace, label=label, label_kind=kind, extra=row["extra_info"])
                )
            )
            assert output.score == pytest.approx(paid_for(head, tuple(encode(trace)), sample))
            assert output.metrics["acc"] == (
                sample.label is ("True" in trace)
            )  # the verdict's, under every head


@pytest.mark.slow
@pytest.mark.paths  # a minute; the test above holds the same rewards to the same rows
@pytest.mark.parametrize("head", ["first_error", "grade"])
def test_verl_trains_the_head_that_one_override_names(tmp_path, head):
    pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")
    from trainer import read_metrics, train

    train(tmp_path, f"reward={head}", "trainer.test_freq=2")
    samples = {sample.text: sample for sample in map(sample_of, range(PROOFS["count"]))}
    metrics, named = read_metrics(tmp_path), False
    for step in (1, 2):
        scores = []
        for line in (tmp_path / "rollouts" / f"{step}.jsonl").read_text().splitlines():
            row = json.loads(line)
            (sample,) = [sample for text, sample in samples.items() if text in row["input"]]
            scores.append(paid_for(head, tuple(encode(row["output"])), sample))
            assert row["score"] == pytest.approx(scores[-1])
            named |= not sample.label and scores[-1] == 1
        assert metrics[step]["critic/score/mean"] == pytest.approx(mean(scores))
    assert named
    assert {"val-core/lab/right/acc/mean@1", "val-core/lab/wrong/acc/mean@1"} <= set(metrics[2])
