"""Sentinel watcher: takes metrics step by step, and raises an alarm when one moves as it should not."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pv_rl.errors import DataError
from pv_runs.sentinel.chart import Chart, Signal
from pv_runs.sentinel.detectors import DETECTORS, KL, Detector
from pv_runs.sentinel.held_out import LARGEST_STEP, SIGN, Fall, HeldOut
from pv_runs.sentinel.path_length import PATH_LENGTH, PathLength
from pv_runs.sentinel.reading import Reading, number
from pv_runs.sentinel.run_length import threshold
from pv_runs.sentinel.settings import SentinelConfig

__all__ = ["Alarm", "Watcher"]

VERSION = 3
"""Of the saved state."""
RATE = "actor/lr"
"""verl's metric of the learning rate."""
BAND = 3.0
"""Half the width of `Alarm.band` in standard deviations: 99.7 % of normal values. For people; nothing is decided by
it."""
NAMED = 5
"""Slices that a sentence names, of up to 100."""


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A sign that has moved in a way in which no healthy run moves, but for the stated rate of false alarms."""

    sign: str
    family: str
    """Of `Detector.family`; several alarms of one are one piece of evidence."""
    step: int
    value: float | None
    """At this step, in the sign's own unit; None if it is no finite number."""
    expected: float | None
    """The best value before the move, or the run's first level; of an alarm by limit, the limit that was passed; None
    before the first value."""
    band: tuple[float | None, float | None]
    """`expected` plus and minus three standard deviations of a single step's value; of a held-out slice the least value
    that is no alarm. None where there is no bound."""
    kind: Literal["cusum", "drift", "limit", "not_finite", "held_out"]
    """Which statistic: a sum of deviations, the distance from the run's first level, a limit from the config, none (a
    NaN or an infinity), or the fall since the best validation."""
    statistic: float | None
    """The CUSUM in standard deviations; of a drift the distance on the sign's scale; of a limit the value; of a
    held-out slice its fall."""
    threshold: float | None
    """What the statistic has passed."""
    since: int
    """The step at which the move began, as estimated."""
    sentence: str
    """All of it for a person, with what to look at."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON; the band is a list there."""
        return asdict(self) | {"band": list(self.band)}


class Watcher:
    """Watches the metric stream of one run.

        watcher = Watcher(SentinelConfig(responses=128))
        for alarm in watcher.observe(step, metrics):
            print(alarm.sentence)

    The same numbers give the same alarms. It reads no clock and no file, and keeps a few numbers for each sign.
    """

    def __init__(self, config: SentinelConfig) -> None:
        self.config = config
        self.threshold = threshold(config.reference, config.run_length)
        """h of every CUSUM, in standard deviations."""
        self.last_step: int | None = None
        self._charts = {name: Chart() for name in config.signs}
        self._path = PathLength()
        self._held_out = HeldOut(config.held_out_slack)

    def observe(self, step: int, metrics: Mapping[str, Any]) -> list[Alarm]:
        """Take in one step. What is absent, no finite number or impossible (a share below 0 or above 1, a length that
        is not positive) is no observation; of a gradient norm or a KL term, NaN and infinity are an alarm at once.

        Raises:
            DataError: `step` is not after the last one.
        """
        if isinstance(step, bool) or not isinstance(step, int):
            raise DataError(f"sentinel: step is {step!r}; give verl's step, a whole number")
        if self.last_step is not None and step <= self.last_step:
            raise DataError(
                f"sentinel: step {step} was given after step {self.last_step}; steps go up. After a rollback restore "
                "the state that was saved with the checkpoint, or start a new watcher"
            )
        metrics = {**metrics, PATH_LENGTH: self.passed(step, metrics)}
        self.last_step = step
        alarms = (self._look(DETECTORS[name], step, metrics) for name in self.config.signs)
        return [*(alarm for alarm in alarms if alarm is not None), *self.validated(step, metrics)]

    def validated(self, step: int, metrics: Mapping[str, Any], *, quiet: bool = False) -> list[Alarm]:
        """Read a validation: one that is logged on its own line, or before the first step. A step is read once.

        Args:
            step: the trainer's.
            metrics: verl's names and numbers.
            quiet: raise no alarm yet; a fall that lasts is one of a later validation.

        Returns:
            One alarm for all slices that fell, or none.
        """
        falls = self._held_out.observe(step, metrics, quiet=quiet)
        return [_by_validation(step, falls)] if falls else []

    def passed(self, step: int, metrics: Mapping[str, Any]) -> float:
        """Know of a step that is not watched how far the policy has gone in it; see `pv_runs.sentinel.path_length`."""
        rate = number(metrics, RATE)
        return self._path.advance(step, rate, rate is not None or any(name in metrics for name in KL))

    def went_back(self, to: int, now: int) -> None:
        """The policy is that of the end of step `to` again; what is logged up to step `now` is still of another."""
        self._path.went_back(to, now)
        self.last_step = self._held_out.last_step = now

    def reads(self, metrics: Mapping[str, Any]) -> bool:
        """Whether any sign can be read off these numbers."""
        detectors, metrics = [DETECTORS[name] for name in self.config.signs], {**metrics, PATH_LENGTH: 1.0}
        return any(
            detector.read(metrics, self.config.responses) is not None or detector.broken(metrics)
            for detector in detectors
        )

    def levels(self) -> dict[str, dict[str, float]]:
        """For each sign that has been seen: its level in its own unit, and how near it is to an alarm, 0 to 1."""
        return {
            name: {
                "level": DETECTORS[name].scale.back(chart.level.mean, self.config.responses),
                "alertness": max(chart.sums[side].sum for side in DETECTORS[name].sides) / self.threshold,
            }
            for name, chart in self._charts.items()
            if chart.seen
        }

    def missing(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Signs that have never been seen, with the metrics that each needs."""
        return {name: DETECTORS[name].metrics for name, chart in self._charts.items() if not chart.seen}

    def state(self) -> dict[str, Any]:
        """All that it remembers, ready for JSON."""
        charts = {name: chart.to_dict() for name, chart in self._charts.items()}
        return {
            "version": VERSION,
            "last_step": self.last_step,
            "way": vars(self._path).copy(),
            "charts": charts,
            "held_out": self._held_out.state(),
        }

    @classmethod
    def restore(cls, config: SentinelConfig, state: Mapping[str, Any]) -> Watcher:
        """Go on from `state`. The config may be another one: a sign that is new starts to learn, one that is not
        watched any more is forgotten.

        Raises:
            DataError: it is not a state of this version.
        """
        watcher = cls(config)
        try:
            if state["version"] != VERSION:
                raise DataError(
                    f"sentinel: the saved state has version {state['version']!r}, this reads {VERSION}; delete it, "
                    "and the sentinel learns anew"
                )
            json.dumps(state, allow_nan=False)  # a sentinel that knows NaN never raises an alarm
            watcher.last_step = last = state["last_step"]
            if last is not None and (type(last) is not int or not 0 <= last <= LARGEST_STEP):
                raise TypeError(f"last_step is {last!r:.40}")
            watcher._path = PathLength.from_dict(state["way"])
            for name in set(config.signs) & set(state["charts"]):
                watcher._charts[name] = Chart.from_dict(state["charts"][name])
            if "held_out" in state:  # states of earlier versions have none
                watcher._held_out.restore(state["held_out"])
        except DataError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(
                f"sentinel: the saved state cannot be read ({type(error).__name__}: {error}); delete it, and the "
                "sentinel learns anew"
            ) from error
        return watcher

    def _look(self, detector: Detector, step: int, metrics: Mapping[str, Any]) -> Alarm | None:
        chart = self._charts[detector.name]
        if detector.broken(metrics):
            was_outside, chart.outside = chart.outside, True
            return None if was_outside else self._not_finite(detector, step, chart)
        reading = detector.read(metrics, self.config.responses)
        if reading is None:
            return None
        signal = chart.observe(step, reading, detector, self.config, self.threshold)
        beyond = self._beyond(detector, reading.value)
        was_outside, chart.outside = chart.outside, beyond is not None
        if beyond is not None and not was_outside:
            return _by_limit(detector, step, reading.value, beyond)
        return None if signal is None else self._by_chart(detector, step, reading, signal, chart)

    def _beyond(self, detector: Detector, value: float) -> float | None:
        """The limit that the value has passed."""
        low, high = self.config.limits.get(detector.name, (None, None))
        if low is not None and value < low:
            return low
        return high if high is not None and value > high else None

    def _not_finite(self, detector: Detector, step: int, chart: Chart) -> Alarm:
        expected = detector.scale.back(chart.level.mean, self.config.responses) if chart.seen else None
        before = "" if expected is None else f"; it was about {expected:.3g}{detector.unit}"
        return Alarm(
            sign=detector.name,
            family=detector.family,
            step=step,
            value=None,
            expected=expected,
            band=(None, None),
            kind="not_finite",
            statistic=None,
            threshold=None,
            since=step,
            sentence=f"Step {step}: {detector.what} is no finite number{before}. verl leaves out an update whose "
            "gradient is none, so that nothing may move any more: lower the learning rate, and go on from a checkpoint "
            "before it.",
        )

    def _by_chart(
        self, detector: Detector, step: int, reading: Reading, signal: Signal, chart: Chart
    ) -> Alarm:
        deviation = chart.level.variance(reading.least) ** 0.5
        responses = self.config.responses
        expected, low, high = (
            detector.scale.back(signal.before + side * BAND * deviation, responses) for side in (0, -1, 1)
        )
        way = "rising" if signal.direction > 0 else "falling"
        beyond = f"single steps were between {low:.3g} and {high:.3g}"
        if signal.kind == "drift":
            times = math.exp(signal.threshold)
            beyond = f"{times:.3g} times" if signal.direction > 0 else f"less than 1/{times:.3g} of"
            beyond += " its level at the start of the run or at the last alarm"
        return Alarm(
            sign=detector.name,
            family=detector.family,
            step=step,
            value=reading.value,
            expected=expected,
            band=(low, high),
            kind=signal.kind,
            statistic=signal.statistic,
            threshold=signal.threshold,
            since=signal.since,
            sentence=f"Step {step}: {detector.what} has been {way} since step {signal.since}, from {expected:.3g} to "
            f"{reading.value:.3g}{detector.unit}; {beyond}. {detector.advice}.",
        )


def _by_limit(detector: Detector, step: int, value: float, limit: float) -> Alarm:
    way = "above" if value > limit else "below"
    return Alarm(
        sign=detector.name,
        family=detector.family,
        step=step,
        value=value,
        expected=limit,
        band=(None, limit) if value > limit else (limit, None),
        kind="limit",
        statistic=value,
        threshold=limit,
        since=step,
        sentence=f"Step {step}: {detector.what} is {value:.3g}{detector.unit}, {way} the limit of {limit:.3g}. "
        f"{detector.advice}.",
    )


def _by_validation(step: int, falls: list[Fall]) -> Alarm:
    worst = falls[0]
    parts = (
        f"on {fall.name} from {fall.best.accuracy:.3g} at step {fall.best.step} to {fall.accuracy:.3g}"
        + (f" ({fall.missing:.0%} without a verdict)" if (fall.missing or 0.0) >= 0.005 else "")
        for fall in falls[:NAMED]
    )
    more = f" and on {len(falls) - NAMED} more" if len(falls) > NAMED else ""
    return Alarm(
        sign=SIGN,
        family=SIGN,
        step=step,
        value=worst.accuracy,
        expected=worst.best.accuracy,
        band=(worst.best.accuracy - worst.allowed, None),
        kind="held_out",
        statistic=worst.best.accuracy - worst.accuracy,
        threshold=worst.allowed,
        since=min(fall.near for fall in falls) + 1,
        sentence=f"Step {step}: held-out balanced accuracy has fallen {', '.join(parts)}{more}. Read its validation "
        "traces: the policy may unlearn what it is not trained on; use an earlier checkpoint, or train on such proofs "
        "too.",
    )
