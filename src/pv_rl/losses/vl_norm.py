"""Weights that fall with length, by the power that makes the gradient's variance small."""

from __future__ import annotations

from torch import Tensor

from pv_rl.losses.stats import BatchStats, ResponseStats

__all__ = ["vl_norm"]


def vl_norm(responses: ResponseStats, batch: BatchStats, alpha: float, max_length: float) -> Tensor:
    """Weight of VL-Norm (first named Delta-L normalization).

        w_i = 1 / (P * L_max) * |o_i|^-alpha / sum_j |o_j|^-alpha

    Denominator: `sum_j` over the responses of the prompt with scope `prompt`; over all of them, with `P` = 1, with
    scope `batch`, which is what the authors' code does. `L_max` is a constant of the run. The variance of a
    response's gradient grows with its length: alpha 1 gives the smallest variance of the sum, alpha 0 is `dr_grpo`,
    and the authors take 0.75 for mathematics. The mass is not 1. Source: arXiv 2509.07558.

    Example: one prompt, lengths 1, 2, 4, alpha 1, L_max 10: w = 4/70, 2/70, 1/70; the mass is 12/70.

    Args:
        responses: statistics of shape (B,), lengths > 0.
        batch: totals of the step.
        alpha: in [0, 1].
        max_length: `L_max` in tokens, at least 1.

    Returns:
        (B,) weight of each token of response i.
    """
    falling = responses.length**-alpha
    return falling / (batch.num_prompts * max_length * responses.group_sum(falling))
