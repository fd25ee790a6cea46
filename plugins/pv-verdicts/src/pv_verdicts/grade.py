r"""Verdict format `grade`: points, for example 0 to 7, or 0, ½, 1.

    reward = R_format * (1 - |s' - s|)        s', s: the trace's and the human's share of the full points

R_format is 1 where the trace has one allowed grade and every text of `require`, else 0 (DeepSeekMath-V2, arXiv
2511.22570, section 2.1). Example: 5 of 7 for a proof of 7 of 7: 1 - 2/7 = 0.714.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pv_rl.errors import ConfigError, DataError
from pv_verdicts.ending import check_ending, last_answers, plain_digits, read_number, text_of
from pv_verdicts.formats import Answer, Truth
from pv_verdicts.pattern import compile_pattern, read_before_verdict

__all__ = ["Grade"]

MOST_GRADES = 1001
POINTS = re.compile(r"(?:points?|pts|分)\.?$", re.IGNORECASE)


class Grade:
    r"""A grade behind `### Grade:`, or in `\boxed{}`, on the last line, see `pv_verdicts.ending.last_answers`.

    Args:
        points: full points, 1 to 1000; the grades are 0, 1, ..., points.
        grades: the allowed grades instead, in points, for example [0, 0.5, 1]; the largest is full points.
        accept: points from which a proof counts as accepted, in traces and truths; by default full points.
        require: texts that a trace has to contain after its thoughts, for example the titles of its sections.
        mark: the words before the grade, where a prompt of yours asks for others, for example `评分`.
        pattern: as in `FirstError`, for traces that give the points before `### False`; one that accepts gives full
            points.

    Raises:
        ConfigError: the grades are not two or more numbers from 0 on, or another option is out of bounds.
    """

    name = "grade"
    truth: Truth = "grade"
    prompt: Path | None = Path(str(files("pv_verdicts"))) / "prompts" / "grade.txt"

    def __init__(
        self,
        points: int = 7,
        grades: Sequence[float] | None = None,
        accept: float | None = None,
        require: Sequence[str] = (),
        mark: str = "Grade",
        pattern: str | None = None,
    ) -> None:
        if grades is None and _is_number(points) and points == int(points) and 1 <= points < MOST_GRADES:
            grades = range(int(points) + 1)
        if (
            not isinstance(grades, Sequence)
            or not 2 <= len(grades) <= MOST_GRADES
            or not all(map(_is_number, grades))
        ):
            raise ConfigError(
                f"points={points!r:.80}, grades={grades!r:.80}; expected full points from 1 to 1000, or two or more "
                "grades as numbers, for example [0, 0.5, 1]"
            )
        self.grades = tuple(sorted({float(one) for one in grades}))
        if len(self.grades) < 2 or self.grades[0] < 0:
            raise ConfigError(f"grades={grades!r:.80}; expected two or more different grades, each 0 or more")
        self.full = self.grades[-1]
        least = self.full if accept is None else accept
        if not _is_number(least) or not self.grades[0] < least <= self.full:
            raise ConfigError(
                f"accept={accept!r:.80}; expected above {self.grades[0]:g}, up to {self.full:g}"
            )
        self.accept = least / self.full
        self.mark, self.require = check_ending(mark, require)
        self.pattern = None if pattern is None else compile_pattern(pattern)

    def read(self, trace: str) -> Answer:
        if self.pattern is not None:
            accepts, before = read_before_verdict(trace, self.pattern, self.require)
            points = self.full if accepts else self._allowed(read_points(before or "", self.full))
            return Answer(accepts=accepts, grade=None if points is None else points / self.full)
        answers = last_answers(trace, self.mark, self.require)
        found = {self._allowed(read_points(given, self.full)) for given in answers}
        points = found.pop() if len(found) == 1 else None
        if points is None:
            return Answer()
        return Answer(accepts=points / self.full >= self.accept, grade=points / self.full)

    def _allowed(self, points: float | None) -> float | None:
        return next((one for one in self.grades if points is not None and abs(one - points) < 1e-9), None)

    def read_truth(self, value: object) -> float:
        """Points as a number or text: `5`, `5.0`, `"5/7"`, `"½"`; True and False are full points and 0."""
        text = text_of(value)
        if text.casefold() in ("true", "false"):
            return float(text.casefold() == "true")
        points = read_points(text, self.full)
        if points is None and not text.count("_"):
            try:
                points = float(text)  # 1e-05
            except ValueError:
                points = None
        if points is None or not 0 <= points <= self.full:
            raise DataError(
                f"the grade of a row is {text!r}; expected points from 0 to {self.full:g}. Correct the row, or set "
                "the format's full points (points or grades)"
            )
        return points / self.full

    def score(self, answer: Answer, truth: float | int | bool) -> float:
        return 0.0 if answer.grade is None else 1.0 - abs(answer.grade - float(truth))


def read_points(text: str, full: float) -> float | None:
    """`5`, `5/7`, `5 out of 7`, `0.5`, `½`, `5 points` as points; None for anything else. `full`: full points."""
    text = POINTS.sub(
        "", " ".join(plain_digits(text[:200]).split()).replace(" out of ", "/").replace(" of ", "/")
    )
    part, slash, whole = text.rpartition("/")
    if slash and "/" not in part and read_number(whole) == full:
        return read_number(part)
    return read_number(text)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
