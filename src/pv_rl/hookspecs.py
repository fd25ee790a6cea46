"""The hooks through which a package, ours included, adds to pv-rl. See `pv_rl.plugins`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LossModeEntry", "hookimpl", "pv_rl_loss_modes"]

hookspec = pluggy.HookspecMarker("pv_rl")
hookimpl = pluggy.HookimplMarker("pv_rl")


@dataclass(frozen=True, kw_only=True)
class LossModeEntry:
    """A weighting under a name that a config can say."""

    name: str
    """Letters, digits, `_` and `-`; what stands before `:` and `@` in a spec."""
    weighting: Callable[..., Tensor]
    """`weighting(responses, batch) -> (B,)`, and `eta=` when there is a default for it."""
    default_eta: float | None = None
    """The eta of a spec that gives none, in [0, 1]; None for a weighting that takes no eta."""


@hookspec
def pv_rl_loss_modes() -> list[LossModeEntry]:  # pyright: ignore[reportReturnType]
    """The loss-aggregation modes that this plugin adds. Called once a process, when a spec is first read."""
