"""CUSUM chart of one value: a level that follows it, and a sum for each direction."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pv_runs.sentinel.detectors import Detector
from pv_runs.sentinel.level import Level
from pv_runs.sentinel.reading import Reading
from pv_runs.sentinel.settings import SentinelConfig

__all__ = ["Chart", "Cusum", "Signal"]


@dataclass(kw_only=True)
class Cusum:
    """Page's sum of one direction, and what it needs to say when a change began."""

    sum: float = 0.0
    """S = max(0, S + z - k), in standard deviations."""
    since: int = 0
    """First step since S was last 0: the usual estimate of the change point."""
    before: float = 0.0
    """The level right before that step, on the chart's scale."""
    total: float = 0.0
    """Sum of the values from `since` on, on the chart's scale."""
    count: int = 0
    """How many they are."""

    def add(self, score: float, reference: float, step: int, value: float, level: float) -> None:
        """Take in one step; `score` is positive in the direction that this sum is about."""
        before = self.sum
        self.sum = max(0.0, before + score - reference)
        if not self.sum:
            self.total, self.count = 0.0, 0
            return
        if not before:
            self.since, self.before = step, level
        self.total += value
        self.count += 1


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A bad move that has passed the threshold."""

    direction: int
    """1 up, -1 down."""
    since: int
    """First step of the move, as estimated."""
    before: float
    """The level that it left, on the chart's scale."""
    statistic: float
    """The sum, in standard deviations."""


@dataclass(kw_only=True)
class Chart:
    """The state of one sign; all of it is plain numbers.

    Four sums: for each direction one with the plain reference, which says that the level has moved, and one that also
    takes off the drift that is healthy, or counts from the record, which says that this is an alarm. A move that is no
    alarm puts the level where the value now is; an alarm does that too, so that it is raised once for one change.
    """

    seen: int = 0
    """Observations."""
    level: Level = field(default_factory=Level)
    record: float | None = None
    """The highest level since the warm-up that rests on as many values as the warm-up has."""
    moved: dict[str, Cusum] = field(default_factory=lambda: {"up": Cusum(), "down": Cusum()})
    alarming: dict[str, Cusum] = field(default_factory=lambda: {"up": Cusum(), "down": Cusum()})
    outside: bool = False
    """Whether the last value was beyond the sign's limits, or no finite number where it has to be one."""

    def observe(
        self,
        step: int,
        reading: Reading,
        detector: Detector,
        config: SentinelConfig,
        drift: float,
        limit: float,
    ) -> Signal | None:
        """Take in one value.

        Args:
            step: the trainer's.
            reading: the value.
            detector: which sides are bad.
            config: memories, reference, warm-up.
            drift: healthy growth, on the chart's scale, a step.
            limit: threshold of every sum, in standard deviations.
        """
        memories, least = config.memories, reading.least
        level = self.level.mean
        score = self.level.score(reading.scaled, memories, least)
        offset = drift * (self.level.age + 1)
        if detector.beyond_record and self.record is not None:
            offset = max(0.0, self.record - level)
        of_drift = self.level.score(reading.scaled, memories, least, offset=offset)
        self.level.observe(reading.scaled, memories, least, config.cap)
        self.seen += 1
        if score is None or of_drift is None or self.seen <= config.warm_up:
            return None
        for name, direction in (("up", 1), ("down", -1)):
            plain = config.counted(direction * score)
            healthy = config.counted(of_drift) if direction > 0 else plain
            self.moved[name].add(plain, config.reference, step, reading.scaled, level)
            self.alarming[name].add(healthy, config.reference, step, reading.scaled, level)
        if self.level.weight >= min(config.warm_up, config.memory / 2):  # after an alarm it is a single value
            self.record = max(level, level if self.record is None else self.record)
        return self._signal(detector, limit, config, reading.scaled)

    def _signal(
        self, detector: Detector, limit: float, config: SentinelConfig, value: float
    ) -> Signal | None:
        for name, direction in (("up", 1), ("down", -1)):
            moved, alarming = self.moved[name], self.alarming[name]
            if alarming.sum > limit and _is_bad(name, alarming, detector):
                signal = Signal(
                    direction=direction, since=alarming.since, before=alarming.before, statistic=alarming.sum
                )
                # Where a change ends is not known yet: begin at the last value, and learn quickly.
                self._settle(value, 1.0)
                return signal
            if moved.sum > limit:
                tolerated = name in detector.sides and not detector.from_zero
                weight = min(float(moved.count), config.memory)
                self._settle(moved.total / moved.count, weight, keep=alarming if tolerated else None)
        return None

    def _settle(self, level: float, weight: float, keep: Cusum | None = None) -> None:
        """Put the level there, resting on `weight` values, and begin all sums anew but `keep`."""
        self.level.move(level, weight)
        self.moved = {"up": Cusum(), "down": Cusum()}
        self.alarming = {name: old if old is keep else Cusum() for name, old in self.alarming.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Chart:
        """The inverse. A KeyError or TypeError says that it is no such state."""
        moved, alarming = (
            {name: Cusum(**state[key][name]) for name in ("up", "down")} for key in ("moved", "alarming")
        )
        return cls(
            seen=state["seen"],
            level=Level(**state["level"]),
            record=state["record"],
            moved=moved,
            alarming=alarming,
            outside=state["outside"],
        )


def _is_bad(name: str, cusum: Cusum, detector: Detector) -> bool:
    if name not in detector.sides:
        return False
    return not detector.from_zero or abs(cusum.total / cusum.count) > abs(cusum.before)
