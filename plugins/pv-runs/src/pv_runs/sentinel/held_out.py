"""Held-out detector: compares each slice's balanced accuracy with its best validation. Training metrics do not show
such a fall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from pv_runs.metric_names import HELD_OUT
from pv_runs.sentinel.reading import number

__all__ = ["SIGN", "Fall", "HeldOut"]

SIGN = "held_out"
"""Name and family of its alarms."""
SLICE = HELD_OUT + "slice/"
BALANCED = "/balanced"
WHOLE = "all proofs"
"""Name of the slice where there is one."""
LARGEST_STEP = 10**12
MOST_PROOFS = 1e9
LEAST_DEVIATIONS = 4.0
"""Standard deviations that a fall must exceed, at least."""
VALIDATIONS_PER_FALSE_ALARM = 1000.0
"""Of a verifier that does not change, over all slices together. With many comparisons (slices x earlier validations)
chance alone makes larger falls: above 31 comparisons, a fall must exceed more than `LEAST_DEVIATIONS`."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one validation says of one slice."""

    step: int
    right: float
    """Accuracy over right proofs, 0 to 1."""
    wrong: float
    right_proofs: float
    """How many of them there are, each with one or more answers."""
    wrong_proofs: float

    @property
    def accuracy(self) -> float:
        return (self.right + self.wrong) / 2

    @property
    def least(self) -> float:
        """What the accuracy is at least, so that a high value of few proofs does not hide later falls."""
        return self.accuracy - LEAST_DEVIATIONS * _noise(self, self) / 2**0.5


@dataclass(kw_only=True)
class Slice:
    """What is remembered of one slice."""

    best: Measurement
    near: int
    """Step of the newest validation that was about as good: a fall began after it."""
    told: Measurement | None = None
    """That of the last alarm, until the slice is about as good as its best again: a further fall is another alarm."""


@dataclass(frozen=True, kw_only=True)
class Fall:
    """A slice that is worse than it was."""

    name: str
    best: Measurement
    near: int
    accuracy: float
    missing: float | None
    """Share of its responses without a verdict."""
    allowed: float
    """Largest fall that raises no alarm."""


class HeldOut:
    """The best validation of each slice.

    Reads what `pv_runs.held_out_metrics` logs: balanced accuracy, in which a missing verdict is a wrong one, by slice,
    or over all rows where there is one slice.
    """

    def __init__(self, slack: float) -> None:
        self.slack = slack
        self.last_step = -1
        """Of the validations so far."""
        self._validations = 0
        self._slices: dict[str, Slice] = {}

    def observe(self, step: int, metrics: Mapping[str, Any], *, quiet: bool = False) -> list[Fall]:
        """Read a validation, if these are the metrics of one. A step is read once.

        Args:
            step: the trainer's.
            metrics: verl's names and numbers.
            quiet: tell no fall yet; one that lasts is told by a later validation.

        Returns:
            The slices that fell, the lowest first.
        """
        found = self._read(step, metrics)
        if step == self.last_step:  # a resume validates again: with other files there may be new slices
            for name, (_, now) in found.items():
                self._slices.setdefault(name, Slice(best=now, near=step))
        if step <= self.last_step or not found:
            return []
        self.last_step = step
        deviations = _deviations(len(found) * self._validations)
        self._validations += 1
        falls = []
        for name, (prefix, now) in found.items():
            one = self._slices.setdefault(name, Slice(best=now, near=step))
            allowed = self._allowed(one.best, now, deviations)
            fall = one.best.accuracy - now.accuracy
            if fall <= allowed / 2:
                one.near, one.told = step, None
            if fall <= allowed and now.least > one.best.least:
                one.best = now
            if fall <= allowed or quiet or not self._is_news(one, now, deviations):
                continue
            one.told = now
            missing = number(metrics, f"{prefix}missing")
            falls.append(
                Fall(
                    name=name,
                    best=one.best,
                    near=one.near,
                    accuracy=now.accuracy,
                    missing=missing,
                    allowed=allowed,
                )
            )
        return sorted(falls, key=lambda fall: fall.accuracy)

    def state(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        slices = {name: asdict(one) for name, one in self._slices.items()}
        return {"last_step": self.last_step, "validations": self._validations, "slices": slices}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it did not come from `state()`.
        """
        slices = {
            name: Slice(
                best=Measurement(**one["best"]),
                near=one["near"],
                told=None if one["told"] is None else Measurement(**one["told"]),
            )
            for name, one in state["slices"].items()
        }
        for step in (state["last_step"], state["validations"], *(one.near for one in slices.values())):
            _check_step(step)
        for one in slices.values():
            for measurement in (one.best, one.told):
                if measurement is not None:
                    _check(measurement)
        self.last_step, self._validations, self._slices = state["last_step"], state["validations"], slices

    def _read(self, step: int, metrics: Mapping[str, Any]) -> dict[str, tuple[str, Measurement]]:
        """Prefix and measurement of each slice. All rows are one where there never were several: they may be others
        now."""
        start, end = len(SLICE), -len(BALANCED)
        names = [key[start:end] for key in metrics if key.startswith(SLICE) and key.endswith(BALANCED)]
        prefixes = {name: f"{SLICE}{name}/" for name in names}
        if not prefixes and not self._slices.keys() - {WHOLE}:
            prefixes = {WHOLE: HELD_OUT}
        read = ((name, prefix, _measurement(metrics, prefix, step)) for name, prefix in prefixes.items())
        return {name: (prefix, now) for name, prefix, now in read if now is not None}

    def _allowed(self, before: Measurement, now: Measurement, deviations: float) -> float:
        return max(self.slack, deviations * _noise(before, now))

    def _is_news(self, one: Slice, now: Measurement, deviations: float) -> bool:
        if one.told is None:
            return True
        return one.told.accuracy - now.accuracy > self._allowed(one.told, now, deviations)


def _measurement(metrics: Mapping[str, Any], prefix: str, step: int) -> Measurement | None:
    """Proofs count, not rows: answers to one proof may all be the same."""
    names = ("acc_label_true", "acc_label_false", "proofs_label_true", "proofs_label_false")
    right, wrong, right_proofs, wrong_proofs = (number(metrics, prefix + name) for name in names)
    if right is None or wrong is None or right_proofs is None or wrong_proofs is None:
        return None
    if not (0 <= right <= 1 and 0 <= wrong <= 1) or min(right_proofs, wrong_proofs) < 1:
        return None
    return Measurement(
        step=step,
        right=right,
        wrong=wrong,
        right_proofs=min(right_proofs, MOST_PROOFS),
        wrong_proofs=min(wrong_proofs, MOST_PROOFS),
    )


def _check(measurement: Measurement) -> None:
    _check_step(measurement.step)
    accuracies = (measurement.right, measurement.wrong)
    proofs = (measurement.right_proofs, measurement.wrong_proofs)
    if any(type(value) not in (int, float) for value in (*accuracies, *proofs)):
        raise TypeError(f"{measurement!r:.200} has a value that is no number")
    if not all(0 <= value <= 1 for value in accuracies) or not all(
        1 <= value <= MOST_PROOFS for value in proofs
    ):
        raise ValueError(f"{measurement!r:.200} is no validation")


def _check_step(step: Any) -> None:
    if type(step) is not int or not -1 <= step <= LARGEST_STEP:
        raise ValueError(f"{step!r:.40} is no step")


def _deviations(comparisons: int) -> float:
    """Of a fall that is no noise, for so many pairs of an earlier validation with one of now (Bonferroni)."""
    chance = 1 / (VALIDATIONS_PER_FALSE_ALARM * max(comparisons, 1))
    return max(LEAST_DEVIATIONS, -NormalDist().inv_cdf(chance))


def _noise(one: Measurement, other: Measurement) -> float:
    """Standard deviation of the difference of two validations of a verifier that stays as it is."""
    right = _pooled((one.right, one.right_proofs), (other.right, other.right_proofs))
    wrong = _pooled((one.wrong, one.wrong_proofs), (other.wrong, other.wrong_proofs))
    return (right + wrong) ** 0.5 / 2


def _pooled(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Variance of the difference of two shares that measure the same, each with its trials; a success and a failure are
    added, see `pv_runs.sentinel.reading`."""
    trials = one[1] + other[1]
    share = (one[0] * one[1] + other[0] * other[1] + 1) / (trials + 2)
    return share * (1 - share) * (1 / one[1] + 1 / other[1])
