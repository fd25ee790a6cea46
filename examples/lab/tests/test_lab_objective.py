"""The reference loop's objective is verl's, function by function."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
import torch
from micro_batch import actor_config
from verl.trainer.ppo import core_algos

from pv_lab.objective import group_advantages, kl_terms, policy_terms

GROUPS = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
CLIP = (0.2, 0.28)
GENERATOR = torch.Generator().manual_seed(0)
LENGTHS = torch.tensor([3, 7, 2, 9, 1, 5, 4, 6, 9, 8])
MASK = torch.arange(9) < LENGTHS[:, None]
LOG_PROBS = -torch.rand(10, 9, generator=GENERATOR)
OLD = LOG_PROBS + 0.8 * torch.randn(10, 9, generator=GENERATOR)
ADVANTAGES = torch.randn(10, generator=GENERATOR)


def test_advantages_are_those_of_grpo():
    scores = torch.tensor([1.0, 0, 1, 0, 0, 0, 0, 1, 0.5, 0])
    tokens = torch.zeros(10, 9)
    tokens[:, 0] = scores
    expected, _ = core_algos.compute_grpo_outcome_advantage(
        tokens, torch.ones(10, 9), np.array(GROUPS, dtype=object)
    )
    ours = group_advantages(scores[None], torch.tensor(GROUPS))[0]
    torch.testing.assert_close(ours, expected[:, 0])


@pytest.mark.parametrize(
    ("sequence_ratio", "loss"),
    [(True, core_algos.compute_policy_loss_gspo), (False, core_algos.compute_policy_loss_vanilla)],
    ids=["gspo", "ppo"],
)
def test_the_clipped_loss_and_its_gradient_are_verls(sequence_ratio, loss):
    config = actor_config(
        "token-mean",
        "gspo" if sequence_ratio else "vanilla",
        clip_ratio_low=CLIP[0],
        clip_ratio_high=CLIP[1],
        clip_ratio_c=1e6,
    )
    config.global_batch_info.update(dp_size=1, batch_num_tokens=int(MASK.sum()), global_batch_size=10)
    theirs, ours = (LOG_PROBS.clone().requires_grad_(True) for _ in range(2))
    expected, _ = loss(
        old_log_prob=OLD,
        log_prob=theirs,
        advantages=ADVANTAGES[:, None].expand(-1, 9),
        response_mask=MASK,
        loss_agg_mode="token-mean",
        config=config,
    )
    terms = policy_terms(
        ours[None], OLD[None], ADVANTAGES[None], MASK[None], clip=CLIP, sequence_ratio=sequence_ratio
    )
    found = (terms * MASK).sum() / MASK.sum()
    torch.testing.assert_close(found, expected)
    expected.backward()
    found.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert (ours.grad[MASK] == 0).any()  # some are clipped
    assert (ours.grad[MASK] != 0).any()


def test_the_kl_term_is_verls():
    expected = core_algos.kl_penalty_forward(LOG_PROBS, OLD, "low_var_kl")
    torch.testing.assert_close(kl_terms(LOG_PROBS, OLD), expected)
