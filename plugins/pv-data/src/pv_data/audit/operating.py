"""Operating characteristic of a plan at a known agreement: exact, proof by proof over the number of agreements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pv_data.audit.counts import share, whole
from pv_data.audit.plan import Plan
from pv_rl.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OperatingCharacteristic", "Stop", "implied_bound", "operating_characteristic"]


@dataclass(frozen=True, kw_only=True)
class Stop:
    """The chance that the audit ends at one stage."""

    checked: int
    """Proofs read by then."""
    accept: float
    reject: float


@dataclass(frozen=True, kw_only=True)
class OperatingCharacteristic:
    """A plan at one true agreement."""

    agreement: float
    """With a population, the share that it really has: a whole number of proofs."""
    accept: float
    """The probability that the slice is accepted."""
    expected_checked: float
    """Proofs read on average."""
    stops: tuple[Stop, ...]
    """One a stage; all their probabilities add to 1."""


def operating_characteristic(
    plan: Plan, agreement: float, *, population: int | None = None
) -> OperatingCharacteristic:
    """Acceptance probability, expected sample and where the audit stops.

    Example: 2 of 2 needed, then the end: at agreement 0.9 it accepts with 0.81.

    Args:
        plan: of any kind.
        agreement: the share of all proofs of the slice where human and label agree; 0 to 1.
        population: proofs in the slice, drawn without replacement; `agreement` is rounded to a whole number of them.
            None: draws are independent.

    Raises:
        ConfigError: no share, or more proofs to read than there are.
    """
    rate = share("agreement", agreement, ends="[]")
    if population is None:
        return _run(plan, rate, lambda _: rate)
    size = whole("population", population, least=1)
    if plan.most > size:
        raise ConfigError(
            f"the plan {plan.name!r} reads up to {plan.most} proofs of {size}; make it for this slice, or leave the "
            "population out"
        )
    good = round(rate * size)
    return _run(plan, good / size, lambda read: _next(good, size, read))


def implied_bound(plan: Plan, confidence: float = 0.90, *, population: int | None = None) -> float:
    """The agreement below which the plan accepts with at most `1 - confidence`.

    For a plan of one stage it is `lower_bound(accept, checked, confidence)`; for any other it takes the looks before
    the last one into account. It is about slices before the audit: of those below, at most this part gets through. It
    says nothing about which part of the accepted ones is below; that depends on how many bad slices there were.
    """
    miss = 1 - share("confidence", confidence)

    def spare(rate: float) -> float:  # grows with the agreement
        return operating_characteristic(plan, rate, population=population).accept - miss

    if spare(0.0) > 0:
        return 0.0
    if spare(1.0) <= 0:
        return 1.0
    if population is None:
        from scipy.optimize import root_scalar

        return float(root_scalar(spare, bracket=(0.0, 1.0), xtol=1e-10).root)
    low, high = 0, population
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if spare(middle / population) > 0 else (middle, high)
    return high / population


def _next(good: int, size: int, read: int) -> NDArray[np.float64]:
    """The chance that the next proof agrees, without replacement, by agreements so far. (read + 1,)."""
    import numpy as np

    # States that cannot be (more agreed than there are, or more differed) have mass 0; keep them in 0..1.
    return np.clip((good - np.arange(read + 1.0)) / (size - read), 0.0, 1.0)


def _run(
    plan: Plan, rate: float, chance: Callable[[int], NDArray[np.float64] | float]
) -> OperatingCharacteristic:
    """`mass[k]`: the probability that the audit goes on and k proofs agreed. `chance(read)`: that the next one does."""
    import numpy as np

    mass, read, stops, expected = np.ones(1), 0, [], 0.0
    for stage in plan.stages:
        while read < stage.checked:
            mass = draw(mass, chance(read))
            read += 1
        accept, reject = 0.0, 0.0
        if stage.accept is not None:
            accept, mass[stage.accept :] = float(mass[stage.accept :].sum()), 0.0
        if stage.reject is not None:
            reject, mass[: stage.reject + 1] = float(mass[: stage.reject + 1].sum()), 0.0
        stops.append(Stop(checked=read, accept=accept, reject=reject))
        expected += read * (accept + reject)
    return OperatingCharacteristic(
        agreement=rate,
        accept=min(1.0, sum(stop.accept for stop in stops)),
        expected_checked=expected,
        stops=tuple(stops),
    )


def draw(mass: NDArray[np.float64], rate: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """One proof more. mass: (n + 1,) by agreements; returns (n + 2,)."""
    import numpy as np

    more = np.zeros(len(mass) + 1)
    more[:-1] = mass * (1 - rate)
    more[1:] += mass * rate
    return more
