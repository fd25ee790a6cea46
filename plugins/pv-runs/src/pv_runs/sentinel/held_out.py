"""Held-out accuracy: whether a slice falls below its best validation, which training metrics do not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pv_runs.metric_names import HELD_OUT
from pv_runs.sentinel.reading import Reading, mean_of_two, number

__all__ = ["SIGN", "Fall", "HeldOut"]

SIGN = "held_out"
"""Name and family of its alarms."""
SLICE = HELD_OUT + "slice/"
BALANCED = "/balanced"
DEVIATIONS = 4.0
"""A fall within so many standard deviations is noise: the best of many validations is higher than what it measures."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The validation that a slice is held against: its best one, or the one of its last alarm."""

    step: int
    accuracy: float
    variance: float


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
        self._best: dict[str, Best] = {}

    def observe(self, step: int, metrics: Mapping[str, Any]) -> list[Fall]:
        """Take in a validation, if these are the metrics of one, and not of a step that was validated before.

        Returns:
            The slices that fell, the lowest first.
        """
        falls: list[Fall] = []
        found = {name: (prefix, _balanced(metrics, prefix)) for name, prefix in _slices(metrics)}
        if step <= self.last_step or not any(reading for _, reading in found.values()):
            return falls
        self.last_step = step
        for name, (prefix, reading) in found.items():
            if reading is None:
                continue
            now = Best(step=step, accuracy=reading.value, variance=reading.least)
            best = self._best.setdefault(name, now)
            allowed = max(self.slack, DEVIATIONS * (best.variance + now.variance) ** 0.5)
            fell = best.accuracy - now.accuracy > allowed
            if fell:
                missing = number(metrics, f"{prefix}missing")
                falls.append(
                    Fall(name=name, best=best, accuracy=now.accuracy, missing=missing, allowed=allowed)
                )
            if fell or now.accuracy > best.accuracy:
                self._best[name] = now
        return sorted(falls, key=lambda fall: fall.accuracy)

    def state(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        best = {name: asdict(one) for name, one in self._best.items()}
        return {"last_step": self.last_step, "best": best}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`. A KeyError, TypeError, ValueError or AttributeError says that it is none."""
        best = {name: Best(**one) for name, one in state["best"].items()}
        for one in (*best.values(), Best(step=state["last_step"], accuracy=0.0, variance=0.0)):
            if type(one.step) is not int or not (0 <= one.accuracy <= 1 and 0 <= one.variance <= 1):
                raise ValueError(f"{one!r:.200} is no validation")
        self.last_step, self._best = state["last_step"], best


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


def _balanced(metrics: Mapping[str, Any], prefix: str) -> Reading | None:
    """Its noise is that of the proofs of each class, of which the log says how many there are in both; answers to one
    proof may all be the same."""
    right, wrong, accuracy, rows, proofs = (
        number(metrics, prefix + name)
        for name in ("acc_label_true", "acc_label_false", "acc", "rows", "proofs")
    )
    rows = rows if proofs is None else proofs
    if right is None or wrong is None or rows is None or rows < 2:
        return None
    share = 0.5
    if accuracy is not None and abs(right - wrong) > 1e-6:
        share = min(max((accuracy - wrong) / (right - wrong), 1 / rows), 1 - 1 / rows)
    return mean_of_two(right, wrong, (rows * share, rows * (1 - share)))
