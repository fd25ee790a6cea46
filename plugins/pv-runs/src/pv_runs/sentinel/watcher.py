"""The sentinel: fed with the numbers of one step after another, it says when something has moved that should not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pv_rl.errors import DataError
from pv_runs.sentinel.alarm import Alarm
from pv_runs.sentinel.chart import Chart, Signal
from pv_runs.sentinel.reading import Reading, number
from pv_runs.sentinel.run_length import threshold
from pv_runs.sentinel.settings import SentinelConfig
from pv_runs.sentinel.signs import KL, SIGNS, Sign
from pv_runs.sentinel.way import WAY, Way

__all__ = ["Watcher"]

VERSION = 2
"""Of the saved state."""
RATE = "actor/lr"
"""verl's metric of the learning rate."""
BAND = 3.0
"""Half the width of `Alarm.band` in standard deviations: 99.7 % of normal values. For people; nothing is decided by
it."""


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
        self._way = Way()

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
        metrics = {**metrics, WAY: self.passed(step, metrics)}
        self.last_step = step
        alarms = (self._look(SIGNS[name], step, metrics) for name in self.config.signs)
        return [alarm for alarm in alarms if alarm is not None]

    def passed(self, step: int, metrics: Mapping[str, Any]) -> float:
        """Know of a step that is not watched how far the policy has gone in it; see `pv_runs.sentinel.way`."""
        rate = number(metrics, RATE)
        return self._way.go(step, rate, rate is not None or any(name in metrics for name in KL))

    def went_back(self, to: int, now: int) -> None:
        """The policy is that of the end of step `to` again; what is logged up to step `now` is still of another."""
        self._way.went_back(to, now)
        self.last_step = now

    def reads(self, metrics: Mapping[str, Any]) -> bool:
        """Whether any sign can be read off these numbers."""
        signs, metrics = [SIGNS[name] for name in self.config.signs], {**metrics, WAY: 1.0}
        return any(
            sign.read(metrics, self.config.responses) is not None or sign.broken(metrics) for sign in signs
        )

    def levels(self) -> dict[str, dict[str, float]]:
        """For each sign that has been seen: its level in its own unit, and how near it is to an alarm, 0 to 1."""
        return {
            name: {
                "level": SIGNS[name].scale.back(chart.level.mean, self.config.responses),
                "alertness": max(chart.alarming[side].sum for side in SIGNS[name].sides) / self.threshold,
            }
            for name, chart in self._charts.items()
            if chart.seen
        }

    def missing(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Signs that have never been seen, with the metrics that each needs."""
        return {name: SIGNS[name].metrics for name, chart in self._charts.items() if not chart.seen}

    def state(self) -> dict[str, Any]:
        """All that it remembers, ready for JSON."""
        charts = {name: chart.to_dict() for name, chart in self._charts.items()}
        return {
            "version": VERSION,
            "last_step": self.last_step,
            "way": vars(self._way).copy(),
            "charts": charts,
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
            watcher.last_step = state["last_step"]
            watcher._way = Way.from_dict(state["way"])
            for name in set(config.signs) & set(state["charts"]):
                watcher._charts[name] = Chart.from_dict(state["charts"][name])
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"sentinel: the saved state cannot be read ({type(error).__name__}: {error}); delete it, and the "
                "sentinel learns anew"
            ) from error
        return watcher

    def _look(self, sign: Sign, step: int, metrics: Mapping[str, Any]) -> Alarm | None:
        chart = self._charts[sign.name]
        if sign.broken(metrics):
            was_outside, chart.outside = chart.outside, True
            return None if was_outside else self._not_finite(sign, step, chart)
        reading = sign.read(metrics, self.config.responses)
        if reading is None:
            return None
        drift = math.log(2) / self.config.doubling_steps if sign.grows else 0.0
        signal = chart.observe(step, reading, sign, self.config, drift, self.threshold)
        beyond = self._beyond(sign, reading.value)
        was_outside, chart.outside = chart.outside, beyond is not None
        if beyond is not None and not was_outside:
            return _by_limit(sign, step, reading.value, beyond)
        return None if signal is None else self._by_cusum(sign, step, reading, signal, chart)

    def _beyond(self, sign: Sign, value: float) -> float | None:
        """The limit that the value has passed."""
        low, high = self.config.limits.get(sign.name, (None, None))
        if low is not None and value < low:
            return low
        return high if high is not None and value > high else None

    def _not_finite(self, sign: Sign, step: int, chart: Chart) -> Alarm:
        expected = sign.scale.back(chart.level.mean, self.config.responses) if chart.seen else None
        before = "" if expected is None else f"; it was about {expected:.3g}{sign.unit}"
        return Alarm(
            sign=sign.name,
            step=step,
            value=None,
            expected=expected,
            band=(None, None),
            kind="not_finite",
            statistic=None,
            threshold=None,
            since=step,
            sentence=f"Step {step}: {sign.what} is no finite number{before}. verl leaves out an update whose gradient "
            "is none, so that nothing may move any more: lower the learning rate, and go on from a checkpoint before "
            "it.",
        )

    def _by_cusum(self, sign: Sign, step: int, reading: Reading, signal: Signal, chart: Chart) -> Alarm:
        deviation = chart.level.variance(reading.least) ** 0.5
        responses = self.config.responses
        expected = sign.scale.back(signal.before, responses)
        low, high = (sign.scale.back(signal.before + side * BAND * deviation, responses) for side in (-1, 1))
        way = "rising" if signal.direction > 0 else "falling"
        sentence = (
            f"Step {step}: {sign.what} has been {way} since step {signal.since}, from {expected:.3g} to "
            f"{reading.value:.3g}{sign.unit}; single steps were between {low:.3g} and {high:.3g}. {sign.advice}."
        )
        return Alarm(
            sign=sign.name,
            step=step,
            value=reading.value,
            expected=expected,
            band=(low, high),
            kind="cusum",
            statistic=signal.statistic,
            threshold=self.threshold,
            since=signal.since,
            sentence=sentence,
        )


def _by_limit(sign: Sign, step: int, value: float, limit: float) -> Alarm:
    way = "above" if value > limit else "below"
    return Alarm(
        sign=sign.name,
        step=step,
        value=value,
        expected=limit,
        band=(None, limit) if value > limit else (limit, None),
        kind="limit",
        statistic=value,
        threshold=limit,
        since=step,
        sentence=f"Step {step}: {sign.what} is {value:.3g}{sign.unit}, {way} the limit of {limit:.3g}. {sign.advice}.",
    )
