"""The mean over seeds and its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MeanOfSeeds", "mean_of_seeds", "t_quantile"]


@dataclass(frozen=True, kw_only=True)
class MeanOfSeeds:
    """A mean, and an interval where there are two values or more."""

    mean: float
    low: float | None
    high: float | None
    number: int
    """`n`, values that it is the mean of, one a run."""


def mean_of_seeds(values: Sequence[float]) -> MeanOfSeeds | None:
    """Student's interval: it holds 95 % of the time if what seeds do to the value is near a normal distribution.

        mean +- t s / sqrt(n),  s^2 = sum_i (x_i - mean)^2 / (n - 1),  t = t_quantile(n - 1)

    Nothing is cut: of two seeds, an accuracy's interval may well go below 0 or above 1.

    Example: 0.5 and 0.7 have s = 0.1414, s / sqrt(2) = 0.1 and t = 12.706: 0.6 (-0.671 to 1.871). 1, 2, 3 have s = 1
    and t = 4.303: 2 (-0.484 to 4.484).

    Args:
        values: (n,) finite numbers, one a run.

    Returns:
        None without a value; no interval of one.
    """
    n = len(values)
    if not n:
        return None
    mean = sum(values) / n
    if n == 1:
        return MeanOfSeeds(mean=mean, low=None, high=None, number=n)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    reach = t_quantile(n - 1) * deviation / math.sqrt(n)
    return MeanOfSeeds(mean=mean, low=mean - reach, high=mean + reach, number=n)


def t_quantile(freedom: int, inside: float = 0.95) -> float:
    """The t with `P(|T| < t) = inside` for `freedom` degrees of freedom, 1 or more.

    Solved by halving, in the angle `a = atan(t / sqrt(freedom))`, from the finite sums of Abramowitz and Stegun 1964,
    26.7.3 and 26.7.4. Example: 12.706, 4.303 and 3.182 for 1, 2 and 3.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if _inside(middle, freedom) < inside:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def _inside(angle: float, freedom: int) -> float:
    """`P(|T| < sqrt(freedom) tan(angle))`."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 if odd else 1, freedom, 2):  # terms with k = 2, 4 ... or 1, 3 ...
        total += term
        term *= cosine**2 * k / (k + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
