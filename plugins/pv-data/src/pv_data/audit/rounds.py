"""The paper's audit of a slice: three cumulative rounds, each with a gate of its own.

Two things the paper leaves open, and what is decided here (docs/audit.md says why):

- a round is passed with an agreement of at least its gate, so 27 of 30 passes 90%;
- the 30 proofs are needed before any decision, to discard too. `least_applies="last"` takes the other reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from pv_data.audit.counts import exact, share, whole
from pv_data.audit.plan import Plan, Stage
from pv_rl.errors import ConfigError

__all__ = ["Round", "Rounds"]


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of one slice."""

    number: int
    """From 1."""
    checked: int
    """Proofs read by its end, those of earlier rounds included."""
    gate: float
    """Agreement needed, of all of them."""

    def passes(self, agree: int, checked: int) -> bool:
        """Whether so many are enough; exact, so 27 of 30 is 0.9."""
        return agree >= exact(self.gate) * checked


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """Rounds for slices of any size. The defaults are the paper's."""

    fractions: tuple[float, ...] = (0.005, 0.01, 0.025)
    """Of the proofs of a slice, read by the end of each round; growing."""
    gates: tuple[float, ...] = (0.75, 0.80, 0.90)
    """Agreement needed at the end of each round; 0 to 1."""
    least: int = 30
    """Proofs read, of a slice that has them; at least 1."""
    least_applies: Literal["every", "last"] = "every"
    """`every`: no round decides with fewer. `last`: only acceptance needs them."""

    def __post_init__(self) -> None:
        if not self.fractions or len(self.fractions) != len(self.gates):
            raise ConfigError(
                f"fractions are {self.fractions} and gates {self.gates}; give one of each for every round"
            )
        for name, values in (("fractions", self.fractions), ("gates", self.gates)):
            for value in values:
                share(name, value, open_=False)
        if not any(self.gates[-1:]):
            raise ConfigError(
                f"the last gate of {self.gates} is 0, so nothing can fail it; give a share above 0"
            )
        if any(b <= a for a, b in zip((0.0, *self.fractions), self.fractions, strict=False)):
            raise ConfigError(
                f"fractions are {self.fractions}; each counts from the start, so let them grow from above 0"
            )
        whole("least", self.least, least=1)
        if self.least_applies not in ("every", "last"):
            raise ConfigError(f"least_applies is {self.least_applies!r}; give every or last")

    def of(self, size: int) -> tuple[Round, ...]:
        """The rounds of a slice of `size` proofs; a fraction is rounded up, and no round reads more than there are."""
        size = whole("size", size, least=1)
        rounds = []
        for number, (fraction, gate) in enumerate(zip(self.fractions, self.gates, strict=True), start=1):
            due = self.least_applies == "every" or number == len(self.fractions)
            checked = min(size, max(ceil(exact(fraction) * size), self.least if due else 1))
            rounds.append(Round(number=number, checked=checked, gate=gate))
        return tuple(rounds)

    def plan(self, size: int, name: str = "rounds") -> Plan:
        """The same as a `Plan`. Rounds that read no more than the one before become one, with the higher gate."""
        gates: dict[int, float] = {}
        for one in self.of(size):
            gates[one.checked] = max(one.gate, gates.get(one.checked, 0.0))
        *before, last = gates.items()
        stages = [
            Stage(checked=n, reject=needed - 1) for n, gate in before if (needed := ceil(exact(gate) * n))
        ]
        checked, needed = last[0], ceil(exact(last[1]) * last[0])
        stages.append(Stage(checked=checked, accept=needed, reject=needed - 1))
        return Plan(name=name, stages=tuple(stages))
