"""Every token weighs the same, and longer answers do not make it weigh less."""

from __future__ import annotations

from torch import Tensor

from pv_rl.losses.stats import BatchStats, ResponseStats

__all__ = ["dr_grpo"]


def dr_grpo(responses: ResponseStats, batch: BatchStats, max_length: float) -> Tensor:
    """Weight of Dr. GRPO: a constant, so that no response's weight depends on how long any response is.

        w_i = 1 / (P * G * L_max)

    Denominator: `P` prompts, `G` responses of the prompt, `L_max` a constant of the run, in general the longest
    response that it allows. With scope `batch` it is `1 / (N * L_max)`. The mass `sum_i w_i |o_i|` is the mean
    length over `L_max`, not 1: a shorter step is a smaller update, on purpose. Source: arXiv 2503.20783.

    Example: one prompt, lengths 1, 2, 5, L_max 10: w = 1/30 for all; the mass is 8/30.

    Args:
        responses: statistics of shape (B,), lengths > 0.
        batch: totals of the step.
        max_length: `L_max` in tokens, at least 1.

    Returns:
        (B,) weight of each token of response i.
    """
    return 1.0 / (batch.num_prompts * responses.group_size * max_length)
