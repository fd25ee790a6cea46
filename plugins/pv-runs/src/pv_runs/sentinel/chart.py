"""CUSUM chart of one value: its noise, and for each side a bound and a sum of what is beyond the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pv_runs.sentinel.detectors import DIRECTIONS, Detector, Side
from pv_runs.sentinel.level import Level
from pv_runs.sentinel.reading import Reading
from pv_runs.sentinel.settings import SentinelConfig
from pv_runs.sentinel.swing import Swing

__all__ = ["Chart", "Cusum", "Signal"]

RECENT = 5
"""Values that `Chart.recent` rests on."""
SLACK_NOISE = 0.75
"""Least slack, in standard deviations of a step's value: the lowest of many smoothed values is below their mean."""
MOST = 2.5
"""A move that was undone is allowed again up to this many times the slack."""


@dataclass(kw_only=True)
class Cusum:
    """Page's sum of one side."""

    sum: float = 0.0
    """S = max(0, S + z - k), in standard deviations."""
    since: int = 0
    """First step since S was last 0: the usual estimate of the change point."""

    def add(self, score: float, reference: float, step: int) -> None:
        """Take in one step; `score` is positive in the direction of this side."""
        if not self.sum:
            self.since = step
        self.sum = max(0.0, self.sum + score - reference)


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A bad move that is large enough for an alarm."""

    kind: Literal["cusum", "drift"]
    """Whether the sum passed its threshold, or the value is too far from the run's first level."""
    direction: int
    """1 up, -1 down."""
    since: int
    """First step of the move, as estimated."""
    before: float
    """The value that it left, on the chart's scale."""
    statistic: float
    """The sum in standard deviations, or the distance on the chart's scale."""
    threshold: float
    """What the statistic has passed."""


@dataclass(kw_only=True)
class Chart:
    """The state of one sign; all of it is plain numbers.

    A value is held against a bound: the best value since the last turn plus a slack (`Swing.allows`). The bound does
    not follow a value that gets worse slowly. After an alarm it is a slack above the value at the alarm, so that a
    change is one alarm and a change that continues is another.
    """

    seen: int = 0
    """Observations."""
    level: Level = field(default_factory=Level)
    record: float | None = None
    """The highest level since the warm-up that rests on as many values as the warm-up has."""
    recent: float = 0.0
    """Mean of the last few values, on the chart's scale."""
    first: float | None = None
    """The level after two warm-ups, or the value at the last alarm; None before."""
    near: int = 0
    """Last step at which the value was near `first`: less than a quarter of the way to `Detector.farthest`."""
    swings: dict[Side, Swing] = field(default_factory=lambda: {"up": Swing(), "down": Swing()})
    sums: dict[Side, Cusum] = field(default_factory=lambda: {"up": Cusum(), "down": Cusum()})
    outside: bool = False
    """Whether the last value was beyond the sign's limits, or no finite number where it has to be one."""

    def observe(
        self, step: int, reading: Reading, detector: Detector, config: SentinelConfig, limit: float
    ) -> Signal | None:
        """Take in one value.

        Args:
            step: the trainer's.
            reading: the value.
            detector: which sides are bad.
            config: memories, reference, warm-up.
            limit: threshold of every sum, in standard deviations.
        """
        memories, least = config.memories, reading.least
        bounds = {side: self._bound(side, detector, least) for side in detector.sides}
        scores = {
            side: self.level.score(reading.scaled, bound, memories, least)
            for side, bound in bounds.items()
            if bound is not None
        }
        level = self.level.mean
        self.level.observe(reading.scaled, memories, least, config.cap)
        self.seen += 1
        self.recent += (self.level.last - self.recent) / min(self.seen, RECENT)
        self._follow(step, detector, config, least)
        if self.seen <= config.warm_up:
            return None
        for side, score in scores.items():
            if score is not None:
                self.sums[side].add(config.counted(DIRECTIONS[side] * score), config.reference, step)
        if self.level.weight >= min(config.warm_up, config.memory / 2):  # after an alarm it is a single value
            self.record = max(level, level if self.record is None else self.record)
        signals = (self._signal(side, detector, limit) for side in detector.sides)
        signal = next((one for one in signals if one is not None), None)
        if signal is not None:
            self._settle(reading.scaled)
        return signal

    def _bound(self, side: Side, detector: Detector, least: float) -> float | None:
        """The worst value of this side that is no reason for an alarm, on the chart's scale."""
        slack = max(detector.slack, SLACK_NOISE * self.level.variance(least) ** 0.5)
        if detector.beyond_record:
            return None if self.record is None else self.record + detector.slack
        allowed = self.swings[side].allows(slack, MOST * slack)
        return None if allowed is None else DIRECTIONS[side] * allowed

    def _follow(self, step: int, detector: Detector, config: SentinelConfig, least: float) -> None:
        if self.first is None and self.seen >= 2 * config.warm_up:
            self.first = self.level.mean
        if self.first is None or all(
            abs(self.recent - self.first) < far / 4 for far in detector.farthest.values()
        ):
            self.near = step
        if self.seen < RECENT:
            return
        noise = self.level.variance(least) ** 0.5
        for side in detector.sides:
            value = DIRECTIONS[side] * self.recent
            drift = config.drift if side in detector.drifts else 0.0
            if drift and self.seen <= config.warm_up + RECENT:  # learning moves a metric furthest at first
                drift = max(drift, detector.farthest.get(side, 0.0) / config.warm_up)
            self.swings[side].observe(max(value, 0.0) if detector.from_zero else value, noise, drift)

    def _signal(self, side: Side, detector: Detector, limit: float) -> Signal | None:
        direction, swing, sum_ = DIRECTIONS[side], self.swings[side], self.sums[side]
        if sum_.sum > limit:
            before = self.level.mean if swing.low is None else direction * swing.low
            return Signal(
                kind="cusum",
                direction=direction,
                since=sum_.since,
                before=before,
                statistic=sum_.sum,
                threshold=limit,
            )
        far = detector.farthest.get(side)
        if far is None or self.first is None or direction * (self.recent - self.first) < far:
            return None
        return Signal(
            kind="drift",
            direction=direction,
            since=self.near + 1,
            before=self.first,
            statistic=abs(self.recent - self.first),
            threshold=far,
        )

    def _settle(self, value: float) -> None:
        """Begin anew at the last value: where a change ends is not known yet."""
        self.level.move(value, 1.0)
        self.recent = value
        self.first = None if self.first is None else value
        for side, swing in self.swings.items():
            swing.alarmed = DIRECTIONS[side] * value
        self.sums = {"up": Cusum(), "down": Cusum()}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Chart:
        """The inverse. A KeyError, TypeError or ValueError says that it is no such state."""
        parts = {
            "level": Level(**state["level"]),
            "swings": {side: Swing(**state["swings"][side]) for side in DIRECTIONS},
            "sums": {side: Cusum(**state["sums"][side]) for side in DIRECTIONS},
        }
        chart = cls(**{**state, **parts})
        if not _fits(asdict(chart), asdict(cls())):
            raise TypeError("a value of it is not a number")
        if min(chart.seen, chart.level.weight, chart.level.freedom, chart.level.squares) < 0:
            raise ValueError("a count or a variance of it is below 0")
        return chart


def _fits(value: Any, fresh: Any) -> bool:
    """Whether a saved value has the type of a new chart's; a number may be where a new chart has None."""
    if isinstance(fresh, dict):
        return value.keys() == fresh.keys() and all(_fits(value[name], fresh[name]) for name in fresh)
    if type(value) is type(fresh):
        return True
    return type(value) is int or (type(value) is float and fresh is None)
