"""Mass of an update, `sum_i w_i |o_i|`: by how much a weighting scales losses and gradients."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch

from pv_rl.errors import LossModeError
from pv_rl.losses.aggregate import response_weights
from pv_rl.losses.mode import LossMode

__all__ = ["expected_remark", "mass", "mass_remark"]

FAR = 3.0
"""A mass above this, or below 1 over this, causes a remark."""


def mass(
    mode: LossMode,
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    advantages: Sequence[float] | None = None,
) -> float:
    """The mass of a step: 1 for `grpo`, `dapo`, `balanced` and `ba`, 0 if no row counts.

    Example: `dr_grpo:10` with lengths 1, 2, 5 of one prompt: 8/30.

    Args:
        mode: the weighting.
        lengths: (B,) response tokens that count.
        groups: B prompt ids.
        advantages: (B,) for a mode that uses their signs; None: all are positive. The mass of `ba` is 1 for any.

    Raises:
        LossModeError: the mode (a plugin's) fails.
    """
    signs = ([1.0] * len(lengths) if advantages is None else advantages) if mode.signs else None
    return float((response_weights(mode, lengths, groups, signs) * torch.as_tensor(lengths)).sum())


def expected_remark(
    mode: LossMode, prompts: int, responses: int, lengths: Sequence[int], where: str
) -> str | None:
    """`mass_remark` before there are responses.

    Args:
        mode: the weighting.
        prompts: of a step.
        responses: of a prompt.
        lengths: in tokens; a step of each is tried, in which all responses are that long.
        where: how long that is, for the text.
    """
    groups = [*range(prompts)] * responses
    try:
        masses = [mass(mode, [length] * len(groups), groups) for length in lengths]
    except LossModeError:  # a plugin's mode may need what made-up lengths do not have
        return None
    return mass_remark(mode, masses, where)


def mass_remark(mode: LossMode, masses: Sequence[float], where: str) -> str | None:
    """A warning if all of `masses` are above 3 or all are below 1/3, else None.

    Args:
        mode: the weighting.
        masses: of some steps.
        where: which steps those are, for example `in the first step`.
    """
    low, high = min(masses), max(masses)
    if low <= FAR and high >= 1 / FAR:
        return None
    size = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    return (
        f"loss_agg_mode={mode.spec}: the mass of an update is {size} {where}; it is 1 with grpo, dapo and balanced. "
        "It scales losses and gradients: gradient clipping acts at another point, and an optimizer other than Adam, "
        "which divides the scale out, needs another learning rate."
    )
