"""Cluster-t intervals: jackknife over questions.

Proofs of one question, and votes on one proof, are correlated and worth less than as many independent ones. So the
standard error comes from leaving out whole questions (the jackknife), and the reach from Student's t:

    se  = sqrt((Q-1)/Q sum_q d_q^2),   d_q = value without question q - mean of these values
    df  = min(Q - 1, 2Q/(K - 1)),      K = Q sum_q d_q^4 / (sum_q d_q^2)^2, the kurtosis
    low, high = value -+ t(df) se

A share, which has values in [0, 1], has its interval on the logit scale, where the error is se / (p (1 - p)), and a
number r in [-1, 1], such as a correlation or a kappa, on that of (r + 1)/2, which is Fisher's z; so no interval has
values that the number cannot have. 2Q/(K - 1) are the degrees of freedom of the variance's own estimate: they are few
where few questions decide a number, as the five wrong proofs of a set of 300 do for balanced accuracy.
docs/concepts/evaluation.md has the simulated coverage, by `benchmarks/interval_coverage.py`.

A share that is 0 or 1 in each question has no spread. Its interval is exact (Clopper-Pearson) over questions, each
taken as one draw, however many proofs it has; a note gives their number.

Cases without an interval (NaN, with a note): the value is undefined; there is one question; the value is undefined
without one of the questions (a class occurs in that one only); another number is the same without each question, so
its error is unknown.

Example: a share with values 0.2, 0.4, 0.6 in three questions of equal weight. Value 0.4, without each 0.5, 0.4, 0.3:
se = sqrt(2/3 * 0.02) = 0.115, K = 3 * 0.0002 / 0.0004 = 1.5, df = min(2, 12) = 2, t = 4.303. On the logit scale
-0.405 -+ 4.303 * 0.115/0.24 = -0.405 -+ 2.070: 0.078 to 0.841.

Source: J. MacKinnon et al. 2023, doi:10.1002/jae.2969 (jackknife over clusters); C. Clopper and E. Pearson 1934.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from pv_eval.counts import Floats, Statistic, Sums
from pv_judge.pages.text import plural
from pv_rl.errors import ConfigError

__all__ = [
    "Estimate",
    "Intervals",
    "cluster_t",
    "estimate_all",
    "exact",
    "jackknife",
    "without_each",
    "zero_test",
]

FEW = 10
"""An interval of fewer questions, or of fewer degrees of freedom than these would give, gets a note."""

NEAR = 1e-9
"""Errors of rounding."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and its interval; NaN where there is no interval, and then a note gives the reason."""

    value: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""

    def to(self, scale: Callable[[float], float]) -> Estimate:
        """On another scale, a function that increases."""
        return replace(self, value=scale(self.value), low=scale(self.low), high=scale(self.high))


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Settings of intervals and of tests by sign flips."""

    flips: int = 10_000
    """Sign flips that a test draws, 100 or more. 0 for no intervals."""
    seed: int = 0
    """Of the drawn sign flips. Intervals are not drawn."""
    level: float = 0.95
    """Of the interval, between 0 and 1."""

    def __post_init__(self) -> None:
        if self.flips and self.flips < 100:
            raise ConfigError(f"{self.flips} sign flips are too few; take 100 or more, or 0 for no intervals")
        if not 0 < self.level < 1:
            raise ConfigError(
                f"the level of an interval is {self.level}; expected between 0 and 1, for example 0.95"
            )


def estimate_all(
    sums: Sums,
    statistics: Mapping[str, Statistic],
    how: Intervals,
    *,
    plain: bool = False,
    signed: bool = False,
) -> dict[str, Estimate]:
    """An estimate of each statistic.

    Args:
        sums: (Q, S).
        statistics: by name.
        how: the level.
        plain: True for numbers that are no shares, such as differences and lengths: no logit scale.
        signed: True for numbers from -1 to 1.
    """
    total, left = sums.columns(sums.table.sum(axis=0)), sums.columns(without_each(sums.table))
    alone = sums.columns(sums.table)
    return {
        name: cluster_t(
            float(statistic(total)),
            statistic(left),
            how,
            alone=None if plain or signed else statistic(alone),
            signed=signed,
        )
        for name, statistic in statistics.items()
    }


def without_each(table: Floats) -> Floats:
    """(Q, S) sums without each of the Q rows of `table` (Q, S)."""
    left = table.sum(axis=0) - table
    # the rest of a sum that a row has all of is 0, not 1e-17: a class without pairs has no accuracy
    left[np.abs(left) <= 1e-12 * np.abs(table).sum(axis=0)] = 0.0
    return left


def cluster_t(
    value: float, left_out: Floats, how: Intervals, *, alone: Floats | None = None, signed: bool = False
) -> Estimate:
    """The interval of one number.

    Args:
        value: of the sample.
        left_out: (Q,) values without each question, NaN where undefined.
        how: the level.
        alone: (Q,) values of each question alone, for a share; None for another number.
        signed: True for a number from -1 to 1.
    """
    from scipy.special import stdtrit

    number = len(left_out)
    if math.isnan(value):
        return Estimate(value=value, note="undefined: division by zero")
    limited = alone is not None or signed
    if limited and abs(value - round(value)) <= 1e-12:  # sums of sevenths, in another order
        value = float(round(value))
    if number < 2 or not how.flips:
        return Estimate(value=value, note="one question only" if how.flips else "no interval was asked for")
    if np.isnan(left_out).any():
        return Estimate(
            value=value, note="undefined without one of the questions: a class occurs in that one only"
        )
    error, freedom = jackknife(left_out)
    if error <= NEAR * max(1.0, abs(value)):
        if alone is not None and value in (0.0, 1.0) and (draws := int((~np.isnan(alone)).sum())):
            return exact(round(value * draws), draws, how)
        return Estimate(
            value=value,
            note="no interval: the number is the same without any one question, so its error is unknown",
        )
    reach = float(stdtrit(freedom, (1 + how.level) / 2)) * error
    least = -1.0 if signed else 0.0
    limited &= bool(least <= value <= 1 and least - NEAR <= left_out.min() and left_out.max() <= 1 + NEAR)
    if limited and least < value < 1:
        share = (value - least) / (1 - least)
        middle, reach = math.log(share / (1 - share)), reach / (value - least) / (1 - share)
        low, high = (least + (1 - least) * _share(end) for end in (middle - reach, middle + reach))
    else:
        low, high = value - reach, value + reach
        low, high = (max(least, low), min(1.0, high)) if limited else (low, high)
    return Estimate(value=value, low=low, high=high, note=_few(number, freedom))


def jackknife(left_out: Floats) -> tuple[float, float]:
    """Standard error and degrees of freedom of a number from its (Q,) values without each question, Q >= 2."""
    number = len(left_out)
    square = (left_out - left_out.mean()) ** 2
    total = float(square.sum())
    if total < 1e-200:
        return 0.0, number - 1.0
    kurtosis = number * float((square**2).sum()) / total**2
    return math.sqrt(total * (number - 1) / number), min(number - 1.0, 2 * number / max(kurtosis - 1, 1e-9))


def zero_test(sums: Sums, statistic: Statistic) -> float:
    """Two-sided p that a number is 0, by the t of its plain interval; NaN where that has none."""
    from scipy.special import stdtr

    value = float(statistic(sums.total))
    left_out = statistic(sums.columns(without_each(sums.table)))
    if len(left_out) < 2 or np.isnan(left_out).any():
        return math.nan
    error, freedom = jackknife(left_out)
    return 2 * float(stdtr(freedom, -abs(value) / error)) if error > NEAR * max(1.0, abs(value)) else math.nan


def exact(hits: int, number: int, how: Intervals) -> Estimate:
    """The Clopper-Pearson interval of `hits` of `number` questions."""
    from scipy.special import betaincinv

    tail = (1 - how.level) / 2
    low = float(betaincinv(hits, number - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, number - hits, 1 - tail)) if hits < number else 1.0
    note = f"exact (Clopper-Pearson) over {plural(number, 'question')}"
    return Estimate(value=hits / number, low=low, high=high, note=note)


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, logit))))


def _few(number: int, freedom: float) -> str:
    if number < FEW:
        return f"of {plural(number, 'question')} only: the interval is rough"
    if freedom < FEW - 1:
        return f"a few of the {plural(number, 'question')} decide it: the interval is rough"
    return ""
