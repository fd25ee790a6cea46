"""Readings: from the metrics of a step to a value, its scale and its least noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Reading",
    "Scale",
    "difference",
    "logarithm",
    "mean_of_two",
    "not_finite",
    "number",
    "share",
    "speed",
]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale on which a value's noise is about the same everywhere."""

    name: str
    forth: Callable[[float], float]
    """From the unit in which people read it to the chart's."""
    back: Callable[[float, float], float]
    """From a level on the chart and the responses of a step back to people's unit."""


def _from_arcsine(level: float, trials: float) -> float:
    part = math.sin(max(0.0, min(level, math.pi / 2))) ** 2
    return max(0.0, min(((trials + 3 / 4) * part - 3 / 8) / trials, 1.0))


ARCSINE = Scale(name="arcsine", forth=lambda x: math.asin(math.sqrt(x)), back=_from_arcsine)
LOG = Scale(name="log", forth=math.log, back=lambda level, _: math.exp(level))
PLAIN = Scale(name="plain", forth=lambda x: x, back=lambda level, _: level)

LEAST_LOG_NOISE = 0.01
"""Standard deviation of a logarithm that is taken for granted: nobody acts on one percent."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a sign reads off a step."""

    value: float
    """As people read it: a share from 0 to 1, tokens, a difference of shares."""
    scaled: float
    """The same on the chart's scale."""
    least: float
    """Variance that the noise of `scaled` has at least: that of independent responses."""


def number(metrics: Mapping[str, Any], name: str) -> float | None:
    """A finite number, or None if it is absent, a text, a bool, NaN or infinite."""
    value = metrics.get(name)
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        given = float(value)
    except (TypeError, ValueError, OverflowError):  # a list, an array of numbers, a huge integer
        return None
    return given if math.isfinite(given) else None


def not_finite(metrics: Mapping[str, Any], name: str) -> bool:
    """Whether a number is there that is NaN or infinite."""
    value = metrics.get(name)
    if value is None or isinstance(value, bool | str | bytes):
        return False
    try:
        return not math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):  # a list, an array of numbers, a huge integer
        return False


def share(part: float, trials: float) -> Reading | None:
    """A share of `trials` responses on Anscombe's scale (1948, Biometrika 35), whose variance is 1 / (4 n + 2).

        y = arcsin sqrt((n p + 3/8) / (n + 3/4))

    Example: 0 of 128 is 0.0540, 1 of 128 is 0.1035; the standard deviation is 0.0442.
    """
    if not 0 <= part <= 1 or trials < 1:
        return None
    smoothed = (trials * part + 3 / 8) / (trials + 3 / 4)
    return Reading(value=part, scaled=ARCSINE.forth(smoothed), least=1 / (4 * trials + 2))


def logarithm(value: float) -> Reading | None:
    """A length, a norm, a number of effective responses."""
    if value <= 0:
        return None
    return Reading(value=value, scaled=LOG.forth(value), least=LEAST_LOG_NOISE**2)


def speed(kl: float, path_length: float) -> Reading | None:
    """How fast the policy has left its start: `sqrt(kl) / path_length`, see `pv_runs.sentinel.path_length`.

    A KL divergence of small moves grows with the square of the path length. A run that goes straight on keeps its
    speed, and one that has nothing more to learn slows down; so no healthy growth has to be assumed.

    Example: 0.0036 after ten steps at a rate of 2e-4 is a speed of 30.
    """
    if kl <= 0 or path_length <= 0:
        return None
    return logarithm(math.sqrt(kl) / path_length)


def difference(first: float, second: float, trials: tuple[float, float]) -> Reading | None:
    """One share less another, each with its trials; infinite for a share that is given and not sampled."""
    if not (0 <= first <= 1 and 0 <= second <= 1):
        return None
    value = first - second
    return Reading(
        value=value, scaled=value, least=_variance(first, trials[0]) + _variance(second, trials[1])
    )


def mean_of_two(first: float, second: float, trials: tuple[float, float]) -> Reading | None:
    """The mean of two shares, each with its trials."""
    if not (0 <= first <= 1 and 0 <= second <= 1):
        return None
    value = (first + second) / 2
    least = (_variance(first, trials[0]) + _variance(second, trials[1])) / 4
    return Reading(value=value, scaled=value, least=least)


def _variance(part: float, trials: float) -> float:
    """Of a share, with a success and a failure added (Agresti and Coull 1998), so that 0 of 10 is not certain."""
    if math.isinf(trials):
        return 0.0
    trials = max(trials, 1.0)
    smoothed = (trials * part + 1) / (trials + 2)
    return smoothed * (1 - smoothed) / trials
