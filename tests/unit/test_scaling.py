"""Scaled advantages: the gradient of a weighting out of a trainer's own aggregation, and what that does not serve."""

from __future__ import annotations

import re

import pytest
import torch

from pv_rl.errors import LossModeError
from pv_rl.losses import check_policy_loss, response_weights, scale_advantages, weighted_sum

LENGTHS, GROUPS = [1, 2, 5, 4, 0, 3], "aaabbc"
MASK = torch.arange(6)[None, :] < torch.tensor(LENGTHS)[:, None]
ADVANTAGES = torch.tensor([0.9, -0.4, -0.5, 1.5, float("nan"), -2.0], dtype=torch.float64)
MODES = ["grpo", "dapo", "balanced:0.6", "dapo@batch", "dr_grpo:8", "vl_norm:0.75:8", "ba"]


def surrogates(log_probs: torch.Tensor, advantages: torch.Tensor) -> dict[str, torch.Tensor]:
    """(B, L) published losses of each token; the old log-probs are such that some ratios are clipped."""
    generator = torch.Generator().manual_seed(0)
    old = log_probs.detach() + torch.randn(log_probs.shape, generator=generator, dtype=log_probs.dtype) * 0.4
    ratio, advantages = (log_probs - old).exp(), advantages.nan_to_num()[:, None]
    clipped = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.28) * advantages)
    return {
        "reinforce": -advantages * log_probs,
        "ppo": -torch.where(advantages < 0, torch.maximum(clipped, 3 * advantages), clipped),
        "cispo": -ratio.clamp(max=1.28).detach() * advantages * log_probs,
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loss", ["reinforce", "ppo", "cispo"])
def test_a_trainers_token_mean_of_scaled_advantages_has_the_modes_gradient(mode, loss):
    log_probs = -torch.rand(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    wanted, found = log_probs.clone().requires_grad_(), log_probs.clone().requires_grad_()
    weights = response_weights(mode, LENGTHS, GROUPS, ADVANTAGES.nan_to_num())
    weighted_sum(surrogates(wanted, ADVANTAGES)[loss], MASK, weights).backward()

    scaled = scale_advantages(mode, ADVANTAGES, MASK, GROUPS, denominator=15)
    assert (scaled.shape, scaled.dtype, scaled[4].item()) == (ADVANTAGES.shape, ADVANTAGES.dtype, 0.0)
    for rows in ([0, 3, 5], [1, 2, 4]):  # two micro-batches, which share the number of tokens
        ((surrogates(found, scaled)[loss] * MASK)[rows].sum() / MASK.sum()).backward()
    torch.testing.assert_close(found.grad, wanted.grad, rtol=1e-12, atol=1e-15)


def test_the_factors_are_those_worked_by_hand():
    mask = torch.tensor([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
    ones = torch.ones(3)
    assert scale_advantages("balanced:0.6", ones, mask, "aaa", 8).tolist() == pytest.approx([2.0, 1.2, 0.72])
    assert scale_advantages("dapo", -ones, mask, "aaa", 8).tolist() == pytest.approx([-1.0] * 3)
    # A trainer's mean over 3 sequences of means over tokens already is grpo.
    means = 3 * mask.sum(-1)
    assert scale_advantages("grpo", ones, mask, "aaa", means).tolist() == pytest.approx([1.0] * 3)
    # Advantages of half precision or whole numbers do not round the weights; an empty row has a mean of 0 / 0.
    for dtype in (torch.bfloat16, torch.int64, torch.bool):
        scaled = scale_advantages("balanced:0.6", ones.to(dtype), mask, "aaa", 8)
        assert scaled.tolist() == pytest.approx([2.0, 1.2, 0.72])
    # A float of Python's is not rounded to float32.
    exact = scale_advantages("balanced:0.6", ones.double(), mask, "aaa", 0.8)
    assert exact.tolist() == pytest.approx([0.2, 0.12, 0.072], rel=1e-15)
    empty = torch.cat([mask, torch.zeros(1, 5)])
    assert scale_advantages("grpo", torch.ones(4), empty, "aaaa", 3 * empty.sum(-1))[3] == 0.0
    by_token = torch.where(mask == 1, 2.0, torch.nan)
    scaled = scale_advantages("balanced:0.6", by_token, mask, torch.tensor([7, 7, 7]), 8)
    assert scaled[1].tolist() == pytest.approx([2.4, 2.4, 0, 0, 0])
    signs = scale_advantages("ba", by_token * torch.tensor([[1], [-1], [-1]]), mask, "aaa", 21)
    assert signs[:, 0].tolist() == pytest.approx([14.0, -4.0, -4.0])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mask": torch.ones(2, 4)}, "advantages (3,) and mask (2, 4)"),
        ({"mask": torch.ones(3)}, "mask (3,)"),
        ({"advantages": torch.ones(3, 3)}, "advantages (3, 3)"),
        ({"denominator": 0}, "the denominator 0.0"),
        ({"denominator": None}, "the denominator None: "),
        ({"denominator": torch.ones(2)}, "one for each of the 3 rows"),
        ({"advantages": torch.tensor([1.0, torch.nan, 1.0])}, "the advantage of row 1 is nan"),
        ({"advantages": torch.tensor([1.0, torch.inf, 1.0])}, "the advantage of row 1 is inf"),
        ({"advantages": torch.full((3,), 3e38), "denominator": 1e3}, "scaled inf"),
        ({"denominator": torch.tensor([1.0, -1.0, 1.0])}, "the denominator [1.0, -1.0, 1.0]"),
        ({"groups": "ab"}, "there are 2 group ids"),
        ({"mode": "balance"}, "Did you mean balanced?"),
    ],
)
def test_what_is_no_step_is_refused(arguments, text):
    given = {
        "mode": "dapo",
        "advantages": torch.ones(3),
        "mask": torch.ones(3, 4),
        "groups": "aab",
        "denominator": 12,
    }
    with pytest.raises(LossModeError, match=re.escape(text)):
        scale_advantages(**(given | arguments))


LOG_PROBS = torch.linspace(-2, -0.1, 24).view(6, 4)
SOME = torch.tensor([0.9, -0.4, -0.5, 1.5, 1.0, -2.0])


def ppo(log_probs: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    ratio, advantages = (log_probs + 1).exp(), advantages.view(len(log_probs), -1)
    return -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()


def k3(log_probs: torch.Tensor) -> torch.Tensor:
    log_ratio = 0.05 * log_probs.detach() - log_probs + log_probs.detach()
    return (log_ratio.exp() - log_ratio - 1).mean()


def gspo(log_probs: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
    return -((log_probs + 1).mean(dim=1).exp() * advantages).mean()


def test_clipped_surrogates_are_served():
    with torch.no_grad():
        check_policy_loss(ppo, LOG_PROBS, SOME)
        check_policy_loss(ppo, LOG_PROBS, SOME[:, None].expand(6, 4))
        check_policy_loss(gspo, LOG_PROBS, SOME)
        check_policy_loss(lambda log_probs, advantages: ppo(log_probs, advantages.mul_(2)), LOG_PROBS, SOME)
    assert SOME[0] == 0.9


@pytest.mark.parametrize(
    "other",
    [
        lambda log_probs, advantages: ppo(log_probs, advantages) + 0.01 * log_probs.exp().mean(),
        lambda log_probs, advantages: ppo(log_probs, advantages) + 0.001 * k3(log_probs),
        lambda log_probs, advantages: ppo(log_probs, advantages.abs() + 0.01),
        lambda log_probs, advantages: ppo(log_probs.detach(), advantages),
        lambda log_probs, advantages: (log_probs * advantages[:, None] * float("nan")).sum(),
    ],
)
def test_a_policy_loss_with_a_term_without_the_advantage_is_refused(other):
    with pytest.raises(LossModeError, match="a gradient where all advantages are 0, or none where"):
        check_policy_loss(other, LOG_PROBS, SOME)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a - a.mean(),  # linear, and it mixes rows
        lambda a: (a - a.mean()) / (a.std() + 1e-6),
        lambda a: a.clamp(-1, 1),
        lambda a: a / a.abs().max().clamp(min=1e-6),
        lambda a: a * a.abs(),
        lambda a: a.flip(0),
    ],
)
def test_a_policy_loss_that_changes_advantages_is_refused(change):
    with pytest.raises(LossModeError, match="not proportional to each row's own advantage"):
        check_policy_loss(lambda log_probs, advantages: ppo(log_probs, change(advantages)), LOG_PROBS, SOME)
