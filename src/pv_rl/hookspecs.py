"""The hooks through which a package, ours included, adds to pv-rl. See `pv_rl.plugins`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LossModeEntry", "Parameter", "hookimpl", "pv_rl_loss_modes"]

hookspec = pluggy.HookspecMarker("pv_rl")
hookimpl = pluggy.HookimplMarker("pv_rl")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One number of a weighting, which a spec gives after a colon."""

    name: str
    """The keyword argument of the weighting, for example `eta`."""
    default: float | None = None
    """What a spec that gives no number means; None if every spec has to give one."""
    low: float = 0.0
    """The smallest number allowed."""
    high: float = math.inf
    """The largest number allowed."""
    meaning: str = ""
    """A few words for the error message, for example `0 weighs by token, 1 by response`."""


@dataclass(frozen=True, kw_only=True)
class LossModeEntry:
    """A weighting under a name that a config can say."""

    name: str
    """Letters, digits, `_` and `-`; what stands before `:` and `@` in a spec."""
    weighting: Callable[..., Tensor]
    """`weighting(responses, batch, **parameters) -> (B,)`, for rows of length > 0. See `pv_rl.losses.balanced`."""
    parameters: tuple[Parameter, ...] = ()
    """The numbers that a spec may give, in the order of the spec."""


@hookspec
def pv_rl_loss_modes() -> list[LossModeEntry]:  # pyright: ignore[reportReturnType]
    """The loss-aggregation modes that this plugin adds. Called once a process, when a spec is first read."""
