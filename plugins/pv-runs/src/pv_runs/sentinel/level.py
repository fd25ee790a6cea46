"""Local level and noise of a series, estimated online with discounting."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Level", "Memories", "normal_score", "student_score"]

OVERLAP = 2 / 3
"""Degrees of freedom for each squared difference of neighbours: the variance of their mean is 3/2 of what as many
independent deviations would give."""


@dataclass(frozen=True, kw_only=True)
class Memories:
    """What is kept from one step to the next."""

    kept_level: float
    """delta = 1 - 1 / memory."""
    kept_noise: float
    """beta = 1 - 1 / noise_memory."""


@dataclass(kw_only=True)
class Level:
    """A local level with discounting (West and Harrison 1997, Bayesian Forecasting, chapter 2), and von Neumann's
    scatter from step to step (1941, Annals of Mathematical Statistics 12), which a trend hardly touches.

        e_t = x_t - m_{t-1}                     what the forecast missed
        q_t = 1 + 1 / (delta w_{t-1})           its variance over that of one value
        w_t = delta w_{t-1} + 1                 values that the level rests on, at most `memory`
        m_t = m_{t-1} + e_t / w_t               an EWMA, once w has grown
        n_t = beta n_{t-1} + 1,  d_t = beta d_{t-1} + (x_t - x_{t-1})^2 / 2,   variance d_t / n_t

    If a run's own level wanders at random by about 1 / memory standard deviations a step, the forecast errors of
    different steps say nothing about each other; if it does not wander, a sum of them grows less.
    `e_t / sqrt(q_t d / n)` is taken for Student's t with 2/3 beta n degrees of freedom, since differences overlap.
    """

    mean: float = 0.0
    """m, on the scale of the chart."""
    weight: float = 0.0
    """w, in steps; 0 before the first value."""
    freedom: float = 0.0
    """n, in differences."""
    squares: float = 0.0
    """d, in squared units of the chart's scale."""
    last: float = 0.0
    """x, the value before, or as much of it as the cap let through."""

    def score(self, value: float, bound: float, memories: Memories, least: float) -> float | None:
        """How far the next value is above a bound, in normal standard deviations; None for the first two.

        Args:
            value: x.
            bound: what it is compared with.
            memories: how long level and scatter remember.
            least: variance that a value has at least, from the number of trials for a share; squared units of x.
        """
        if not self.freedom:
            return None
        return normal_score((value - bound) / self._spread(memories, least), self._freedom(memories))

    def observe(self, value: float, memories: Memories, least: float, cap: float) -> None:
        """Take in one value, arguments as in `score`.

        Args:
            cap: a value farther off than this counts as one at this distance, in standard deviations. Else the first
                step of a collapse would widen the band that has to notice it.
        """
        if not self.weight:
            self.mean, self.weight, self.last = value, 1.0, value
            return
        missed, step = value - self.mean, value - self.last
        if self.freedom:
            far = student_score(cap, self._freedom(memories))
            missed = _within(missed, far * self._spread(memories, least))
            step = _within(step, far * math.sqrt(2 * self.variance(least)))
        self.weight = memories.kept_level * self.weight + 1
        self.mean += missed / self.weight
        self.freedom = memories.kept_noise * self.freedom + 1
        self.squares = memories.kept_noise * self.squares + step**2 / 2
        self.last += step

    def variance(self, least: float) -> float:
        """Of one value around the level, never below `least`."""
        return max(least, self.squares / self.freedom) if self.freedom else least

    def _spread(self, memories: Memories, least: float) -> float:
        return math.sqrt(self.variance(least) * (1 + 1 / (memories.kept_level * self.weight)))

    def _freedom(self, memories: Memories) -> float:
        return memories.kept_noise * self.freedom * OVERLAP

    def move(self, mean: float, weight: float) -> None:
        """Put the level at the mean of the last `weight` values; the scatter stays as it is."""
        self.mean, self.weight = mean, weight


def normal_score(t: float, freedom: float) -> float:
    """The normal deviate as unusual as Student's `t`, by Wallace (1959, Annals of Mathematical Statistics 30).

        z = (8 n + 1) / (8 n + 3) * sqrt(n ln(1 + t^2 / n)),  with the sign of t

    Example: t 2.262 with 9 degrees of freedom is the 97.5 % quantile, and z is 1.96. Up to |z| 4 it is never too
    large by more than 0.01, and too small by at most 0.02 with 10 degrees of freedom and 0.12 with 3.
    """
    return math.copysign(_factor(freedom) * math.sqrt(freedom * math.log1p(t * t / freedom)), t)


def student_score(z: float, freedom: float) -> float:
    """The inverse of `normal_score`."""
    return math.copysign(math.sqrt(freedom * math.expm1((z / _factor(freedom)) ** 2 / freedom)), z)


def _within(x: float, limit: float) -> float:
    return max(-limit, min(x, limit))


def _factor(freedom: float) -> float:
    return (8 * freedom + 1) / (8 * freedom + 3)
