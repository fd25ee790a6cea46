"""Plan comparison: several audit plans side by side, before anyone reads a proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pv_data.audit.bounds import lower_bound
from pv_data.audit.counts import share
from pv_data.audit.operating import OperatingCharacteristic, implied_bound, operating_characteristic
from pv_data.audit.plan import Plan, Rounds, curtailed
from pv_data.audit.risk_plans import Risks, fixed_plan, sequential_plan
from pv_rl.errors import ConfigError

__all__ = ["AGREEMENTS", "MINUTES", "Comparison", "PlanFigures", "compare", "usual_plans"]

AGREEMENTS = (0.70, 0.80, 0.85, 0.90, 0.95, 0.99)
MINUTES = 6.0
"""Of human time a proof: the paper's 100 hours a thousand, two readers each and a third where they differ."""


@dataclass(frozen=True, kw_only=True)
class PlanFigures:
    """One plan."""

    plan: Plan
    at: tuple[OperatingCharacteristic, ...]
    """One for each agreement of the comparison."""
    bound: float
    """`implied_bound`: slices below it are accepted with at most 1 - confidence."""
    counted_bound: float
    """`lower_bound` of the fewest agreements that the last stage accepts, as if there were no other look."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Plans for a slice of one size."""

    size: int
    """Proofs of the slice."""
    agreements: tuple[float, ...]
    confidence: float
    minutes: float
    """Human minutes a proof."""
    finite: bool
    """Whether proofs are drawn without replacement from `size`."""
    plans: tuple[PlanFigures, ...]

    def hours(self, proofs: float) -> float:
        """Of human time."""
        return proofs * self.minutes / 60

    def document(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)


def usual_plans(size: int, risks: Risks | None = None) -> tuple[Plan, ...]:
    """The paper's rounds in both readings, then a fixed and a sequential plan for the risks, some of them curtailed.

    Args:
        size: proofs of the slice.
        risks: None: the defaults.
    """
    wanted = risks or Risks()
    paper = Rounds().plan(size, "paper")
    fixed = fixed_plan(wanted)
    return (
        paper,
        curtailed(paper),
        Rounds(least_applies="last").plan(size, "paper, 30 at the end"),
        fixed,
        curtailed(fixed),
        sequential_plan(wanted),
    )


def compare(
    plans: Iterable[Plan],
    size: int,
    *,
    agreements: Sequence[float] = AGREEMENTS,
    confidence: float = 0.90,
    minutes: float = MINUTES,
    finite: bool = False,
) -> Comparison:
    """Compute all figures.

    Raises:
        ConfigError: no plans, no agreements, minutes that are no time, or with `finite` a plan larger than the slice.
    """
    chosen = tuple(plans)
    if not chosen or not agreements:
        raise ConfigError(f"{len(chosen)} plans at {len(agreements)} agreements; give at least one of each")
    if not 0 < minutes < float("inf"):
        raise ConfigError(f"minutes is {minutes!r}; give the human minutes that a proof takes, above 0")
    population = size if finite else None
    return Comparison(
        size=size,
        agreements=tuple(share("agreement", one, ends="[]") for one in agreements),
        confidence=share("confidence", confidence),
        minutes=float(minutes),
        finite=finite,
        plans=tuple(
            PlanFigures(
                plan=plan,
                at=tuple(operating_characteristic(plan, one, population=population) for one in agreements),
                bound=implied_bound(plan, confidence, population=population),
                counted_bound=lower_bound(
                    plan.stages[-1].accept or 0, plan.most, confidence, population=population
                ),
            )
            for plan in chosen
        ),
    )
