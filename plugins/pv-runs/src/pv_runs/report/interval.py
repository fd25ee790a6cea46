"""Mean over seeds with Student's 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pv_judge.extras import needs
from pv_judge.pages.text import estimate

__all__ = ["MeanOfSeeds", "mean_of_seeds"]


@dataclass(frozen=True, kw_only=True)
class MeanOfSeeds:
    """A mean, and an interval where there are two values or more."""

    mean: float
    low: float | None
    high: float | None
    number: int
    """`n`, values that it is the mean of, one a run."""

    def __str__(self) -> str:
        """`0.712 (0.650 to 0.774)`."""
        return estimate(self.mean, self.low, self.high)


def mean_of_seeds(values: Sequence[float]) -> MeanOfSeeds | None:
    """Student's interval: it holds 95 % of the time if what seeds do to the value is near a normal distribution.

        mean +- t s / sqrt(n),  s^2 = sum_i (x_i - mean)^2 / (n - 1),  t the 97.5 % quantile for n - 1 degrees

    Nothing is cut: of two seeds, an accuracy's interval may well go below 0 or above 1.

    Example: 0.5 and 0.7 have s = 0.1414, s / sqrt(2) = 0.1 and t = 12.706: 0.6 (-0.671 to 1.871). 1, 2, 3 have s = 1
    and t = 4.303: 2 (-0.484 to 4.484).

    Args:
        values: (n,) finite numbers, one a run.

    Returns:
        None without a value; no interval of one.

    Raises:
        SetupError: scipy, which knows t, is not installed.
    """
    n = len(values)
    if not n:
        return None
    mean = fmean(values)
    if n == 1:
        return MeanOfSeeds(mean=mean, low=None, high=None, number=n)
    with needs("scipy", "an interval over seeds", "pip install scipy"):
        from scipy.stats import t
    reach = float(t.ppf(0.975, n - 1)) * stdev(values) / math.sqrt(n)
    return MeanOfSeeds(mean=mean, low=mean - reach, high=mean + reach, number=n)
