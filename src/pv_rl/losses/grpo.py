"""Every response weighs the same, however long it is."""

from __future__ import annotations

from torch import Tensor

from pv_rl.losses.stats import BatchStats, ResponseStats

__all__ = ["grpo"]


def grpo(responses: ResponseStats, batch: BatchStats) -> Tensor:
    """Weight of GRPO: a prompt's mass is split evenly between its responses.

        w_i = 1 / (P * G * |o_i|)

    Denominator: `P` prompts, `G` responses of the prompt, `|o_i|` tokens of the response, so that
    `sum_i w_i |o_i| = 1`. Source: the paper's w^GRPO with the mean over prompts written out; GRPO is
    arXiv 2402.03300.

    Example: one prompt, lengths 1, 2, 5: w = 1/3, 1/6, 1/15, and each response has mass 1/3.

    Args:
        responses: statistics of shape (B,), lengths > 0.
        batch: totals of the step.

    Returns:
        (B,) weight of each token of response i.
    """
    return 1.0 / (batch.num_prompts * responses.group_size * responses.length)
