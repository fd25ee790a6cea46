"""The oracle, by hand: it is what everything else is held to."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from places import SUPPORT

pytest.importorskip("transformers", reason="verl is not installed: pip install 'pv-rl[verl]'")
import torch
from grid.oracle import Loss, Row, kl_divergence, policy_loss, update_weights, weights_of

LENGTHS, GROUPS = [1, 2, 5, 4], ["a", "a", "a", "b"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("grpo", [1 / 6, 1 / 12, 1 / 30, 1 / 8]),
        ("dapo", [1 / 16, 1 / 16, 1 / 16, 1 / 8]),
        ("balanced:0.5", [11 / 96, 7 / 96, 23 / 480, 1 / 8]),
        ("grpo@batch", [1 / 4, 1 / 8, 1 / 20, 1 / 16]),
        ("dapo@batch", [1 / 12] * 4),
        ("token-mean", [1 / 12] * 4),
        ("seq-mean-token-mean", [1 / 4, 1 / 8, 1 / 20, 1 / 16]),
        ("seq-mean-token-sum-norm", [1 / 40] * 4),
    ],
)
def test_weights_are_those_of_the_formula(spec, expected):
    assert weights_of(spec, LENGTHS, GROUPS, longest=10) == pytest.approx(expected)


@pytest.mark.parametrize("spec", ["grpo", "dapo", "balanced:0.3", "grpo@batch", "seq-mean-token-mean"])
def test_a_row_without_tokens_is_in_no_count(spec):
    with_it = weights_of(spec, [*LENGTHS, 0, 0], [*GROUPS, "b", "c"], longest=10)
    assert with_it == [*weights_of(spec, LENGTHS, GROUPS, longest=10), 0, 0]


def row(length: int, group: str = "a", log_prob: float = -1.0, advantage: float = 1.0) -> Row:
    values = torch.full((length,), log_prob, dtype=torch.float64)
    return Row(
        group=group,
        prompt=torch.tensor([1]),
        response=torch.ones(length, dtype=torch.long),
        mask=torch.ones(length, dtype=torch.long),
        old_log_probs=values,
        ref_log_probs=values,
        advantages=torch.full((length,), advantage, dtype=torch.float64),
        is_weights=torch.ones(length),
    )


def test_weights_by_prompt_are_fixed_for_the_step_and_those_by_batch_for_the_mini_batch():
    rows = [row(length, group) for length, group in zip(LENGTHS, GROUPS, strict=True)]
    assert update_weights("dapo", rows, [0, 3], 2, 10) == pytest.approx({0: 1 / 8, 3: 1 / 4})
    assert update_weights("dapo@batch", rows, [0, 3], 2, 10) == pytest.approx({0: 1 / 5, 3: 1 / 5})


@pytest.mark.parametrize(
    ("policy", "advantage", "ratio", "loss", "slope"),
    [
        ("vanilla", 1.0, 1.1, -1.1, -1.1),
        ("vanilla", 1.0, 1.5, -1.2, 0.0),
        ("vanilla", -1.0, 1.5, 1.5, 1.5),
        ("vanilla", -1.0, 4.0, 3.0, 0.0),
        ("gspo", 1.0, 1.1, -1.1, -1.1),
        ("gspo", 1.0, 1.5, -1.2, 0.0),
        ("gspo", -1.0, 4.0, 4.0, 4.0),
        ("gpg", 2.0, 1.0, 2.0, -2.0),
        ("cispo", 1.0, 1.5, 1.2 * (1 - math.log(1.5)), -1.2),
    ],
)
def test_policy_losses_and_their_slopes_are_the_published_ones(policy, advantage, ratio, loss, slope):
    """One token of old log-prob -1, so of log-prob -1 + log(ratio); the slope is by log-prob."""
    log_prob = torch.tensor([-1 + math.log(ratio)], dtype=torch.float64, requires_grad=True)
    value = policy_loss(log_prob, row(1, advantage=advantage), Loss(policy=policy)).sum()
    value.backward()
    assert value.item() == pytest.approx(loss)
    assert log_prob.grad.item() == pytest.approx(slope)


@pytest.mark.parametrize(
    ("estimator", "value", "slope"),
    [("k1", 0.5, 1.0), ("mse", 0.125, 0.5), ("low_var_kl", math.exp(-0.5) - 0.5, 1 - math.exp(-0.5))],
)
def test_kl_estimators_and_their_slopes_are_the_published_ones(estimator, value, slope):
    log_prob = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    divergence = kl_divergence(log_prob, torch.tensor([-1.5], dtype=torch.float64), estimator).sum()
    divergence.backward()
    assert divergence.item() == pytest.approx(value)
    assert log_prob.grad.item() == pytest.approx(slope)


def test_it_imports_neither_verl_nor_pv_rl():
    code = "import sys, grid.oracle; sys.exit(any(name.split('.')[0] in ('verl', 'pv_rl') for name in sys.modules))"
    folder = str(SUPPORT)
    assert subprocess.run([sys.executable, "-c", code], cwd=folder, timeout=120).returncode == 0
