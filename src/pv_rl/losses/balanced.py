"""The paper's mixture of the two, by one number."""

from __future__ import annotations

from torch import Tensor

from pv_rl.losses.dapo import dapo
from pv_rl.losses.grpo import grpo
from pv_rl.losses.stats import BatchStats, ResponseStats

__all__ = ["DEFAULT_ETA", "balanced"]

DEFAULT_ETA = 0.6
"""The paper's choice for its 8B, 14B and 32B runs."""


def balanced(responses: ResponseStats, batch: BatchStats, eta: float = DEFAULT_ETA) -> Tensor:
    """Balanced token weighting: a share `eta` of the mass goes by response, the rest by token.

        w_i = eta * 1 / (P * G * |o_i|) + (1 - eta) * 1 / (P * sum_j |o_j|)

    Denominators as in `grpo` and `dapo`; `sum_i w_i |o_i| = 1` for every eta. Source: the paper's w^bal.

    Example: one prompt, lengths 1, 2, 5, eta 0.6: w = 0.25, 0.15, 0.09, and the masses are 0.25, 0.30, 0.45.

    Args:
        responses: statistics of shape (B,), lengths > 0.
        batch: totals of the step.
        eta: in [0, 1]; 0 is `dapo`, 1 is `grpo`.

    Returns:
        (B,) weight of each token of response i.
    """
    return eta * grpo(responses, batch) + (1.0 - eta) * dapo(responses, batch)
