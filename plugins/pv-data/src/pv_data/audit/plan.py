"""Audit plan: stages of proofs to read, and the agreements at which the audit stops.

The paper's rounds, a fixed sample and a sequential test are all plans, so one operating characteristic computes all.

Two things the paper leaves open about its rounds, and what is decided here (docs/concepts/audit.md says why):

- a round is passed with an agreement of at least its gate, so 27 of 30 passes 90%;
- the 30 proofs are needed before any decision, to discard too. `least_applies="last"` takes the other reading.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Literal

from pv_data.audit.counts import exact, share, whole
from pv_rl.errors import ConfigError

__all__ = ["Plan", "Round", "Rounds", "Stage", "curtailed"]


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
                share(name, value, ends="[]")
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


def curtailed(plan: Plan, name: str | None = None) -> Plan:
    """The plan with a look after each proof, at which only what cannot change any more is decided.

    Every slice ends as it would have, so the acceptance probability stays the same. What is lost is the rest of the
    sample: an accepted slice has `implied_bound` of the plan, not a bound from its counts, which were stopped when
    they were good.

    Example: of "27 of 30", the fourth disagreement discards and the 27th agreement accepts.
    """
    stages = []
    for n in range(1, plan.most + 1):
        ahead = [stage for stage in plan.stages if stage.checked >= n]
        # More agreements never make the outcome worse, so the two extreme continuations are all there is to look at.
        accept = bisect_left(range(n + 1), True, key=lambda k, n=n, ahead=ahead: _accepts(ahead, n, k, 0))
        reject = bisect_left(range(n + 1), True, key=lambda k, n=n, ahead=ahead: _accepts(ahead, n, k, 1)) - 1
        if accept <= n or reject >= 0:
            stages.append(
                Stage(
                    checked=n,
                    accept=accept if accept <= n else None,
                    reject=reject if reject >= 0 else None,
                )
            )
    return Plan(name=name or f"{plan.name}, curtailed", stages=tuple(stages))


def _accepts(ahead: list[Stage], n: int, k: int, each: int) -> bool:
    """The outcome after k of n agreed, if all later proofs agree (`each` 1) or none does (0)."""
    for stage in ahead:
        agree = k + each * (stage.checked - n)
        if stage.accept is not None and agree >= stage.accept:
            return True
        if stage.reject is not None and agree <= stage.reject:
            return False
    raise AssertionError("the last stage of a plan decides")  # Plan checks it
