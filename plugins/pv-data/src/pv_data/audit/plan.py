"""A plan: after how many proofs one looks, and with how many agreements one stops.

The paper's rounds, a fixed sample and a sequential test are all of this form, so all are computed by the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from pv_data.audit.counts import whole
from pv_rl.errors import ConfigError

__all__ = ["Plan", "Stage"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One look at all that was checked so far."""

    checked: int
    """Proofs checked up to here, those of earlier stages included; at least 1."""
    accept: int | None = None
    """Accept the slice with this many agreements or more; None: not at this stage."""
    reject: int | None = None
    """Discard it with this many or fewer; None: not at this stage."""

    def __post_init__(self) -> None:
        whole("checked", self.checked, least=1)
        for name, value in (("accept", self.accept), ("reject", self.reject)):
            if value is not None and whole(name, value, least=0) > self.checked:
                raise ConfigError(
                    f"{name} is {value} of {self.checked} checked, which no sample reaches; "
                    "give at most as many, or None for a stage that does not do it"
                )
        if self.accept is not None and self.reject is not None and self.reject >= self.accept:
            raise ConfigError(
                f"after {self.checked} proofs, {self.reject} agreements discard the slice and {self.accept} accept it; "
                "give reject below accept"
            )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Stages in order; the last one decides."""

    name: str
    """As tables call it."""
    stages: tuple[Stage, ...]
    """Each with more proofs than the one before."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError(f"the plan {self.name!r} has no stages; give at least one")
        sizes = [stage.checked for stage in self.stages]
        if any(later <= earlier for earlier, later in pairwise(sizes)):
            raise ConfigError(
                f"the stages of {self.name!r} look after {sizes} proofs; these are counted from the first proof on, "
                "so each must be larger than the one before"
            )
        last = self.stages[-1]
        if last.accept is None or last.reject is None or last.accept != last.reject + 1:
            raise ConfigError(
                f"the last stage of {self.name!r} accepts at {last.accept} and discards at {last.reject}; it must "
                "decide every case, so reject has to be accept - 1"
            )

    @property
    def most(self) -> int:
        """Proofs read in the worst case."""
        return self.stages[-1].checked
