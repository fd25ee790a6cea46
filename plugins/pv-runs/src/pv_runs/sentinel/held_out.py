"""Held-out accuracy: whether a slice falls below its best validation, which training metrics do not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

from pv_runs.metric_names import HELD_OUT
from pv_runs.sentinel.reading import number

__all__ = ["SIGN", "Fall", "HeldOut"]

SIGN = "held_out"
"""Name and family of its alarms."""
SLICE = HELD_OUT + "slice/"
BALANCED = "/balanced"
LARGEST_STEP = 10**12
MOST_PROOFS = 1e9
"""More count as so many: each class has at least one, also in floating point."""
LEAST_DEVIATIONS = 4.0
"""A fall within so many standard deviations is always noise."""
VALIDATIONS_PER_FALSE_ALARM = 1000.0
"""Of a verifier that stays as it is, over all slices together. The best of many validations is higher than what it
measures, and one of many slices is low: with three slices four deviations are enough for 10 earlier validations."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The validation that a slice is held against: its best one, or the one of its last alarm."""

    step: int
    near: int
    """Step of the newest validation that was not clearly worse: a fall began after it."""
    right: float
    """Accuracy over right proofs."""
    wrong: float
    right_proofs: float
    wrong_proofs: float

    @property
    def accuracy(self) -> float:
        return (self.right + self.wrong) / 2

    @property
    def least(self) -> float:
        """What the accuracy is at least, so that a high value of few proofs does not hide later falls."""
        return self.accuracy - LEAST_DEVIATIONS * _noise(self, self) / 2**0.5


@dataclass(frozen=True, kw_only=True)
class Fall:
    """A slice that is worse than it was."""

    name: str
    best: Best
    accuracy: float
    missing: float | None
    """Share of its responses without a verdict."""
    allowed: float
    """The fall that would have been no alarm."""


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
        self._best: dict[str, Best] = {}

    def observe(self, step: int, metrics: Mapping[str, Any]) -> list[Fall]:
        """Take in a validation, if these are the metrics of one, and not of a step that was validated before.

        Returns:
            The slices that fell, the lowest first.
        """
        falls: list[Fall] = []
        found = {
            name: (prefix, now) for name, prefix in _slices(metrics) if (now := _read(metrics, prefix, step))
        }
        if step == self.last_step:  # a resume validates again: with other files there may be new slices
            self._best = {name: now for name, (_, now) in found.items()} | self._best
        if step <= self.last_step or not found:
            return falls
        self.last_step = step
        deviations = _deviations(len(found) * self._validations)
        self._validations += 1
        for name, (prefix, now) in found.items():
            best = self._best.setdefault(name, now)
            allowed = max(self.slack, deviations * _noise(best, now))
            fall = best.accuracy - now.accuracy
            if fall > allowed:
                missing = number(metrics, f"{prefix}missing")
                falls.append(
                    Fall(name=name, best=best, accuracy=now.accuracy, missing=missing, allowed=allowed)
                )
            if fall > allowed or now.least > best.least:
                self._best[name] = now
            elif fall <= allowed / 2:
                self._best[name] = replace(best, near=step)
        return sorted(falls, key=lambda fall: fall.accuracy)

    def state(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        best = {name: asdict(one) for name, one in self._best.items()}
        return {"last_step": self.last_step, "validations": self._validations, "best": best}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`. A KeyError, TypeError, ValueError or AttributeError says that it is none."""
        best = {name: Best(**one) for name, one in state["best"].items()}
        steps = [step for one in best.values() for step in (one.step, one.near)]
        for step in (state["last_step"], state["validations"], *steps):
            if type(step) is not int or not -1 <= step <= LARGEST_STEP:
                raise ValueError(f"{step!r:.40} is no step")
        for one in best.values():
            accuracies, proofs = (one.right, one.wrong), (one.right_proofs, one.wrong_proofs)
            if not all(0 <= value <= 1 for value in accuracies) or not all(value > 0 for value in proofs):
                raise ValueError(f"{one!r:.200} is no validation")
        self.last_step, self._validations, self._best = state["last_step"], state["validations"], best


def _slices(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and prefix of each; those of all rows are one where there is no other."""
    names = [
        key[len(SLICE) : -len(BALANCED)]
        for key in metrics
        if key.startswith(SLICE) and key.endswith(BALANCED)
    ]
    yield from ((name, f"{SLICE}{name}/") for name in names)
    if not names:
        yield "all proofs", HELD_OUT


def _read(metrics: Mapping[str, Any], prefix: str, step: int) -> Best | None:
    """Its noise is that of the proofs of each class, of which the log says how many there are in both; answers to one
    proof may all be the same."""
    right, wrong, accuracy, rows, proofs = (
        number(metrics, prefix + name)
        for name in ("acc_label_true", "acc_label_false", "acc", "rows", "proofs")
    )
    rows = rows if proofs is None else proofs
    if right is None or wrong is None or rows is None:
        return None
    if rows < 2 or not (0 <= right <= 1 and 0 <= wrong <= 1):
        return None
    rows, share = min(rows, MOST_PROOFS), 0.5
    if accuracy is not None and abs(right - wrong) > 1e-6:
        share = min(max((accuracy - wrong) / (right - wrong), 1 / rows), 1 - 1 / rows)
    return Best(
        step=step,
        near=step,
        right=right,
        wrong=wrong,
        right_proofs=rows * share,
        wrong_proofs=rows * (1 - share),
    )


def _deviations(comparisons: int) -> float:
    """Of a fall that is no noise, for so many pairs of an earlier validation with one of now (Bonferroni)."""
    chance = 1 / (VALIDATIONS_PER_FALSE_ALARM * max(comparisons, 1))
    return max(LEAST_DEVIATIONS, -NormalDist().inv_cdf(chance))


def _noise(one: Best, other: Best) -> float:
    """Standard deviation of the difference of two validations of a verifier that stays as it is."""
    right = _pooled((one.right, one.right_proofs), (other.right, other.right_proofs))
    return (right + _pooled((one.wrong, one.wrong_proofs), (other.wrong, other.wrong_proofs))) ** 0.5 / 2


def _pooled(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Variance of the difference of two shares that measure the same, each with its trials; a success and a failure are
    added, see `pv_runs.sentinel.reading`."""
    trials = one[1] + other[1]
    share = (one[0] * one[1] + other[0] * other[1] + 1) / (trials + 2)
    return share * (1 - share) * (1 / one[1] + 1 / other[1])
