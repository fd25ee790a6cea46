"""What to change so that a run fits, computed again with the changes made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pv_runs.plan.change import Changer
from pv_runs.plan.changes import CHANGES
from pv_runs.plan.layout import division_findings
from pv_runs.plan.memory import Memory, memory_of
from pv_runs.plan.setup import Setup

__all__ = ["Remedy", "find_remedy"]

ROUNDS = 24
LEAST_GIB = 0.01
"""That a change has to save."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """Changes together."""

    overrides: tuple[str, ...]
    """As arguments of the command line."""
    fits: bool
    """Whether the run fits with them. If not, they are the best that was found."""
    over_gib: float
    """GiB that are missing with them."""
    gpus: int
    """That the run takes with them."""
    host_gib: float
    """GiB of a training node's host that it then needs."""
    fullest: float
    """Share of its memory that the fullest phase then takes; near 1 it is too near to call."""


def find_remedy(setup: Setup) -> Remedy | None:
    """Greedily: of `CHANGES` the first that saves memory where it is missing, and again, until the run fits.

    At the end, each change that is not needed is taken back. None: the run fits as it is.
    """
    if memory_of(setup).fits:
        return None
    taken: list[Changer] = []
    for _ in range(ROUNDS):
        changer = _next(setup, taken)
        if changer is None:
            break
        taken.append(changer)
        if _apply(setup, taken)[1].fits:
            break
    if _apply(setup, taken)[1].fits:
        for changer in tuple(taken):
            fewer = [one for one in taken if one is not changer]
            if _apply(setup, fewer)[1].fits:
                taken = fewer
    changed, memory, overrides = _apply(setup, taken)
    return Remedy(
        overrides=tuple(f"{key}={value}" for key, value in overrides.items()),
        fits=memory.fits,
        over_gib=memory.over_gib,
        gpus=changed.gpus,
        host_gib=memory.host_gib,
        fullest=max(phase.gib / phase.available_gib for phase in memory.phases),
    )


def _next(setup: Setup, taken: Sequence[Changer]) -> Changer | None:
    """The first that helps and leaves nothing that cannot be divided and could be before."""
    now, memory, _ = _apply(setup, taken)
    undivided = len(division_findings(now))
    for changer in CHANGES:
        change = changer(now)
        if change is None or memory_of(change.setup).over_gib > memory.over_gib - LEAST_GIB:
            continue
        if len(division_findings(change.setup)) <= undivided:
            return changer
    return None


def _apply(setup: Setup, changers: Sequence[Changer]) -> tuple[Setup, Memory, dict[str, str]]:
    overrides: dict[str, str] = {}
    for changer in changers:
        change = changer(setup)
        if change is not None:
            setup, overrides = change.setup, {**overrides, **change.overrides}
    return setup, memory_of(setup), overrides
