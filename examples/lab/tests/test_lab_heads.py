"""Heads of the lab: what a trace earns for the first wrong step or a grade, by the lab and in verl."""

from __future__ import annotations

import asyncio
import json
from statistics import mean

import pytest

from pv_lab.dataset import make_rows
from pv_lab.heads import HEADS, paid_for
from pv_lab.samples import make_sample
from pv_lab.tokenizer import EOS, encode
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
