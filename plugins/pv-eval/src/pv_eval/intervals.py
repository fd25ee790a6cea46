"""Bootstrap intervals: clustered by question, BCa.

Proofs of one question, and votes on one proof, are correlated and worth less than as many independent ones. So the
bootstrap draws whole questions, with replacement; all sums of a draw are one row of a product of matrices.
`scipy.stats.bootstrap` gives the same intervals (a test compares them), but it draws again for each statistic.

The interval is BCa (Efron 1987): percentiles of the resampled values, moved by the bias z0 and the acceleration a,

    z0 = Phi^-1(share of resamples below the value, ties half)
    a  = sum_q d_q^3 / (6 (sum_q d_q^2)^1.5),   d_q = mean of leave-one-out values - value without question q
    low, high = percentiles Phi(z0 + (z0 -+ z)/(1 - a (z0 -+ z))),  z = 1.96 for 95 %

because accuracies near 0 or 1 and ratios are skewed, and because leaving a question out costs one subtraction here.

Cases without an interval (NaN, with a note): the value is undefined; there is one question; more than 5 % of the
resamples have no value (a class occurs in few questions), so the interval would be too narrow; all resamples are equal
(12 of 12 right), so the interval of width 0 would look like certainty; the value is outside all resamples.

Source: B. Efron, Better bootstrap confidence intervals, 1987, doi:10.1080/01621459.1987.10478410.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pv_eval.counts import Floats, Statistic, Sums
from pv_judge.agreement import UNDEFINED
from pv_rl.errors import ConfigError

__all__ = ["Bootstrap", "Estimate", "bca", "estimate_all"]

NORMAL = NormalDist()
FEW = 10
"""An interval of fewer questions gets a note."""
BLOCK = 4_000_000
"""Numbers in a block of draws, 32 MB."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and its interval; NaN where there is no interval, and then a note gives the reason."""

    value: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """Settings of the bootstrap."""

    resamples: int = 1000
    """100 or more. 0 for no intervals."""
    seed: int = 0
    level: float = 0.95
    """Of the interval, between 0 and 1."""

    def __post_init__(self) -> None:
        if self.resamples and self.resamples < 100:
            raise ConfigError(f"{self.resamples} resamples are too few; take 100 or more, or 0 for none")
        if not 0 < self.level < 1:
            raise ConfigError(
                f"the level of an interval is {self.level}; expected between 0 and 1, for example 0.95"
            )

    def draw(self, table: Floats) -> Floats:
        """(R, S) sums of R draws of the Q rows of `table` (Q, S). The same seed and Q draw the same questions."""
        rng = np.random.default_rng(self.seed)
        number = len(table)
        even = np.full(number, 1 / number)
        at_once = max(1, BLOCK // number)
        sizes = [min(at_once, self.resamples - start) for start in range(0, self.resamples, at_once)]
        return np.vstack([rng.multinomial(number, even, size=size).astype(float) @ table for size in sizes])


def estimate_all(sums: Sums, statistics: Mapping[str, Statistic], how: Bootstrap) -> dict[str, Estimate]:
    """An estimate of each statistic, all from the same draws.

    Args:
        sums: (Q, S).
        statistics: by name.
        how: the draws.
    """
    total = sums.table.sum(axis=0)
    number = len(sums.table)
    values = {name: float(statistic(sums.columns(total))) for name, statistic in statistics.items()}
    if number < 2 or not how.resamples:
        note = "one question only" if how.resamples else "no interval was asked for"
        return {name: _without(value, note) for name, value in values.items()}
    drawn = sums.columns(how.draw(sums.table))
    left = sums.columns(total - sums.table)
    return {
        name: bca(values[name], statistic(drawn), statistic(left), how.level)
        for name, statistic in statistics.items()
    }


def bca(value: float, resampled: Floats, left_out: Floats, level: float) -> Estimate:
    """The BCa interval of one number.

    Args:
        value: of the sample.
        resampled: (R,) values of the draws, NaN where undefined.
        left_out: (Q,) values without each question.
        level: of the interval.
    """
    if math.isnan(value):
        return _without(value, "")
    known = np.sort(resampled[~np.isnan(resampled)])
    if len(known) < (1 - UNDEFINED) * len(resampled):
        return _without(value, "undefined in more than 5 % of the resamples: a class occurs in few questions")
    scale = 1e-12 * max(1.0, abs(value))
    if known[-1] - known[0] <= scale:
        return _without(value, "the same in all resamples, which is no certainty")
    below = float(np.mean(known < value - scale) + np.mean(np.abs(known - value) <= scale) / 2)
    if not 0 < below < 1:
        return _without(value, "outside all resamples: the number is biased in small samples")
    ends = _ends(NORMAL.inv_cdf(below), _acceleration(left_out), level)
    low, high = (float(np.quantile(known, end)) for end in ends)
    few = f"of {len(left_out)} questions only: the interval is rough" if len(left_out) < FEW else ""
    return Estimate(value=value, low=low, high=high, note=few)


def _without(value: float, note: str) -> Estimate:
    return Estimate(value=value, note="undefined: division by zero" if math.isnan(value) else note)


def _acceleration(left_out: Floats) -> float:
    """0 where leaving a question out changes nothing, or leaves nothing."""
    away = left_out.mean() - left_out
    square = float((away**2).sum())
    if math.isnan(square) or square < 1e-24:
        return 0.0
    return float((away**3).sum()) / (6 * square**1.5)


def _ends(bias: float, acceleration: float, level: float) -> list[float]:
    """Shares of the resamples below the two ends; 0 or 1 where the formula has no solution."""
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        moved = bias + NORMAL.inv_cdf(tail)
        room = 1 - acceleration * moved
        ends.append(NORMAL.cdf(bias + moved / room) if room > 0 else float(moved > 0))
    return ends
