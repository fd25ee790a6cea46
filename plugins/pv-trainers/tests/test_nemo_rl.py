"""NeMo-RL's adapter without NeMo-RL: numbers by hand, refusals, and the launcher of a script."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from pv_rl.errors import LossModeError
from pv_trainers import nemo_rl

MASK = torch.tensor([[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 1, 1, 1, 1, 1]])
"""Lengths 1, 2, 5: no token predicts the first one."""


class Estimator:
    def compute_advantage(self, prompt_ids, rewards, mask, **others):
        return rewards[:, None].expand(mask.shape)


def make_config(weighting="balanced:0.6", rows=3, **settings):
    grpo = SimpleNamespace(
        adv_estimator=SimpleNamespace(weighting=weighting), advantage_clip_low=None, **settings
    )
    loss = SimpleNamespace(token_level_loss=True)
    return SimpleNamespace(grpo=grpo, loss_fn=loss, policy={"train_global_batch_size": rows})


@pytest.mark.parametrize(
    ("mode", "rows", "by_token", "factors"),
    [
        ("balanced:0.6", 3, True, [2, 1.2, 0.72]),  # 8 (0.6 / (3 len) + 0.4 / 8)
        ("grpo", 3, False, [1, 1, 1]),  # 3 len / (3 len)
        ("dapo", 3, False, [3 / 8, 6 / 8, 15 / 8]),
        ("dapo", 1, True, [3 / 8, 6 / 8, 15 / 8]),  # three updates, each divided by its own tokens
        ("dapo@batch", 1, True, [1, 1, 1]),  # an update is a step of its own
        ("dr_grpo:4@batch", 2, True, [3 / 8, 3 / 8, 5 / 4]),
    ],
)
def test_factors_by_hand(mode, rows, by_token, factors):
    prompts = torch.tensor([[7, 8]] * 3)
    scaled = nemo_rl.scale_step(mode, torch.ones(3, 6), MASK, prompts, rows, by_token)
    assert scaled.sum(dim=-1).tolist() == pytest.approx(
        [f * n for f, n in zip(factors, [1, 2, 5], strict=True)]
    )


def test_rows_are_grouped_by_their_prompt_and_an_empty_row_does_not_count():
    prompts = torch.tensor([[7, 8], [7, 9], [7, 8], [7, 9]])
    mask = torch.cat([MASK, torch.zeros(1, 6, dtype=torch.long)])
    scaled = nemo_rl.scale_step("dapo", torch.ones(4, 6), mask, prompts, 4, True)
    assert scaled[:, 1].tolist() == pytest.approx([8 / 12, 8 / 4, 8 / 12, 0])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (make_config(None), "weighting is None. Set a mode"),
        (make_config(0.6), "weighting is 0.6. Set a mode"),
        (make_config("balance"), "balanced"),
        (make_config(advantage_clip_high=5.0), r"grpo.advantage_clip_high changes scaled advantages"),
        (make_config(invalid_tool_call_advantage=-5.0), r"grpo.invalid_tool_call_advantage"),
        (make_config(malformed_thinking_advantage=0.0), r"grpo.malformed_thinking_advantage"),
        (SimpleNamespace(**vars(make_config()), async_rl={}), "async_rl is set: the SingleController"),
    ],
)
def test_what_cannot_be_served_is_refused_at_start(config, message):
    with pytest.raises(LossModeError, match=message):
        nemo_rl.weigh(Estimator(), config)


def test_a_fraction_of_a_row_is_refused():
    half = torch.full((2, 3), 0.5)
    with pytest.raises(LossModeError, match="loss_multiplier is a fraction"):
        nemo_rl.scale_step("dapo", half, half, torch.zeros(2, 1), 2, True)


@pytest.fixture
def fake(monkeypatch):
    """A package nemo_rl that has no more than the seam."""
    packages = {
        name: ModuleType(name) for name in ("nemo_rl", "nemo_rl.algorithms", "nemo_rl.algorithms.grpo")
    }
    for name, package in packages.items():
        monkeypatch.setitem(sys.modules, name, package)
    grpo = packages["nemo_rl.algorithms.grpo"]
    monkeypatch.setattr(packages["nemo_rl.algorithms"], "grpo", grpo, raising=False)
    monkeypatch.setattr(grpo, "_create_advantage_estimator", lambda master_config: Estimator(), raising=False)
    return grpo


def test_launcher_runs_a_script_whose_estimator_is_weighed(fake, monkeypatch, tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 1\n")
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, beside\n"
        "from nemo_rl.algorithms.grpo import _create_advantage_estimator\n"
        "assert __name__ == '__main__'\n"
        "sys.given = sys.argv, _create_advantage_estimator(sys.config)\n"
    )
    monkeypatch.setattr(sys, "argv", ["nemo_rl", str(script), "--config", "c.yaml"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "config", make_config(), raising=False)
    monkeypatch.setattr(sys, "given", None, raising=False)
    monkeypatch.delitem(sys.modules, "pv_trainers.nemo_rl")
    runpy.run_module("pv_trainers.nemo_rl", run_name="__main__")
    arguments, estimator = sys.given
    assert arguments == [str(script), "--config", "c.yaml"]
    advantages = estimator.compute_advantage(
        prompt_ids=torch.zeros(3, 1), rewards=torch.tensor([1.0, -1.0, 1.0]), mask=MASK, repeated_batch={}
    )
    assert advantages[:, 1].tolist() == pytest.approx([2.0, -1.2, 0.72])


@pytest.mark.parametrize("seam", [None, lambda master_config, tokenizer: None])
def test_a_changed_seam_is_refused(fake, monkeypatch, seam):
    monkeypatch.delattr(fake, "_create_advantage_estimator")
    if seam:
        monkeypatch.setattr(fake, "_create_advantage_estimator", seam, raising=False)
    with pytest.raises(LossModeError, match="as at commit 7ea279a"):
        nemo_rl.install()
