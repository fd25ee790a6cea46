"""Truth of a row: its grade and label from the points of one or several judges, and its first wrong step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pv_eval.sets.values import label_of, list_of, number_of, text_of
from pv_rl.errors import ConfigError

__all__ = ["MOST_STEPS", "Judges", "PointRule", "first_error_of", "given", "grade_of", "rubric_of"]

MOST_STEPS = 1_000_000
"""Number of a step at most; a larger one is a mistake."""


class Judges(dict[str, Any]):
    """What several judges gave, by the number of the judge."""


@dataclass(frozen=True, kw_only=True)
class PointRule:
    """Which points make a proof right, and which wrong."""

    most: float = 7.0
    """Points of a perfect proof, where the row has no maximum."""
    least: float = 0.0
    """Points of a worthless proof."""
    positive: float | None = None
    """Right from here on; None: only with all points."""
    negative: float | None = None
    """Wrong up to here, and without a label in between; None: wrong wherever it is not right."""
    by: str = "human points"
    """Whose points they are."""

    def __post_init__(self) -> None:
        for name in ("most", "least", "positive", "negative"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, str) or number_of(value) is None):
                shown = {"most": "max", "least": "min"}.get(name, name)
                raise ConfigError(f"{shown} is {value!r:.80}; expected a number of points")
        if not self.most > self.least:
            raise ConfigError(
                f"max is {self.most!r}, min is {self.least!r}; max is the points of a perfect proof, above those of a "
                "worthless one"
            )
        top = self.most if self.positive is None else self.positive
        if not self.least < top <= self.most or not (
            self.negative is None or self.least <= self.negative < top
        ):
            raise ConfigError(
                f"positive={self.positive!r}, negative={self.negative!r}; expected {self.least:g} <= negative < "
                f"positive <= max = {self.most:g}"
            )

    def share(self, points: float, most: float | None = None) -> float:
        """Points as a share of the full points, 0 to 1. `most` is the row's own maximum."""
        return (points - self.least) / ((self.most if most is None else most) - self.least)

    def label(self, share: float) -> bool | None:
        """The label of a proof with this share of the points."""
        if share >= (1.0 if self.positive is None else self.share(self.positive)):
            return True
        return None if self.negative is not None and share > self.share(self.negative) else False

    def __str__(self) -> str:
        top = "all points" if self.positive is None else f"{self.positive:g} or more of {self.most:g}"
        low = "" if self.negative is None else f", wrong up to {self.negative:g}"
        return f"{self.by}: right with {top}{low}"


def given(value: object) -> bool:
    """Whether a field holds something: neither null, nor blank, nor NaN."""
    return not (
        value is None
        or (isinstance(value, str) and not value.strip())
        or (isinstance(value, float) and value != value)
    )


def grade_of(points: object, most: object, rule: PointRule) -> float | str:
    """The mean of the judges' grades, 0 to 1, or the reason why there is none.

    Args:
        points: a number, a list of parts with `points` and if wanted `max_points`, or the `Judges` of these.
        most: the row's own maximum, likewise; nothing for the rule's.
    """
    judges = points if isinstance(points, Judges) else {"": points}
    shares: list[float] = []
    for judge, value in judges.items():
        if not given(value):
            continue
        limit = most.get(judge) if isinstance(most, Judges) else most
        total, full = _sums(value)
        full = number_of(limit) if given(limit) else full
        if total is None or (given(limit) and full is None):
            return "points are not a number"
        full = rule.most if full is None else full
        if not (rule.least <= total <= full and full > rule.least):
            return "points out of range"
        shares.append(rule.share(total, full))
    return sum(shares) / len(shares) if shares else "no points"


def _sums(value: object) -> tuple[float | None, float | None]:
    """Points and the most that there are, where the value has it: those of its parts together, if it has parts."""
    parts = list_of(value, dict)
    if parts is None:
        return number_of(value), None
    points, most = ([number_of(part.get(key)) for part in parts] for key in ("points", "max_points"))
    known = [one for one in points if one is not None]
    limits = [one for one in most if one is not None]
    return (
        sum(known) if known and len(known) == len(parts) else None,
        sum(limits) if limits and len(limits) == len(parts) else None,
    )


def rubric_of(value: object) -> str:
    """A marking scheme as text: a text, or a list of parts with title, points and description.

    Of a judge's marks (parts with `max_points`) only what the scheme says is taken, and never the judge's points or
    words, which are the truth that a verifier has to find.
    """
    if isinstance(value, Judges):  # all have the same scheme
        return next((text for one in value.values() if (text := rubric_of(one))), "")
    parts = list_of(value, dict)
    if not parts:
        return text_of(value) or ""
    return "\n".join(line for part in parts if (line := _part(part)))


def _part(part: Mapping[str, object]) -> str:
    judged = "max_points" in part or "grading_scheme_desc" in part
    keys = ("grading_scheme_desc",) if judged else ("desc", "description")
    words = next((text for key in keys if (text := text_of(part.get(key)))), "")
    points = number_of(part.get("max_points" if judged else "points"))
    worth = "" if points is None else f"{points:g} points"
    head = " ".join(one for one in (text_of(part.get("title")) or "", f"({worth})" if worth else "") if one)
    return ": ".join(one for one in (head, words) if one)


def first_error_of(value: object, labels: object, steps: Sequence[str], first: int) -> int | str | None:
    """Number of the first wrong step from 1, 0 for none, None where it is unknown, or the reason why it is unusable.

    Args:
        value: its number in the file; -1 for none, and 0 too where steps are counted from 1.
        labels: whether each step is right, in order.
        steps: of the proof, where they are known.
        first: number of a proof's first step in the file, 0 or 1.
    """
    found: int | None = None
    if given(value):
        number = number_of(value)
        if number is None or number != int(number) or not -1 <= number <= MOST_STEPS:
            return "first error is not a step"
        found = 0 if number < first else int(number) - first + 1
        if steps and found > len(steps):
            return "first error is beyond the steps"
    if given(labels):
        flags = [label_of(one) for one in list_of(labels) or [None]]
        if None in flags:
            return "labels of steps cannot be read"
        if steps and len(flags) != len(steps):
            return "labels of steps do not fit the steps"
        by_labels = flags.index(False) + 1 if False in flags else 0
        if found not in (None, by_labels):
            return "first error and labels of steps differ"
        found = by_labels
    return found
