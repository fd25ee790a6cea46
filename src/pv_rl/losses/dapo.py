"""Every token of a prompt weighs the same, whichever response it is in."""

from __future__ import annotations

from torch import Tensor

from pv_rl.losses.stats import BatchStats, ResponseStats

__all__ = ["dapo"]


def dapo(responses: ResponseStats, batch: BatchStats) -> Tensor:
    """Weight of DAPO: a prompt's mass is split evenly between its tokens.

        w_i = 1 / (P * sum_j |o_j|)

    Denominator: `P` prompts, `sum_j |o_j|` tokens of the prompt's responses, so that `sum_i w_i |o_i| = 1`.
    Source: the paper's w^DAPO with the mean over prompts written out; DAPO is arXiv 2503.14476 (which takes
    all prompts as one group: that is scope `batch`).

    Example: one prompt, lengths 1, 2, 5: w = 1/8 for all, and the responses have masses 1/8, 2/8, 5/8.

    Args:
        responses: statistics of shape (B,), lengths > 0.
        batch: totals of the step.

    Returns:
        (B,) weight of each token of response i.
    """
    return 1.0 / (batch.num_prompts * responses.group_tokens)
