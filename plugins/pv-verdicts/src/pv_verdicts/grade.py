r"""Verdict format `grade`: points, for example 0 to 7, or 0, ½, 1.

    reward = 1 - |s' - s|        s', s: the trace's and the human's share of the full points

and 0 for a trace without a grade, or with one that is not allowed (the format factor of DeepSeekMath-V2, arXiv
2511.22570, section 2.1). Example: 5 of 7 for a proof of 7 of 7: 1 - 2/7 = 0.714.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pv_rl.errors import ConfigError, DataError
from pv_rl.verdict import parse_verdict
from pv_verdicts.ending import compile_pattern, last_line, last_match, only_number
from pv_verdicts.formats import Answer, Truth

__all__ = ["Grade"]


class Grade:
    r"""A grade behind `### Grade:`, or in `\boxed{}`, on the last line.

    Args:
        points: full points; the grades are 0, 1, ..., points.
        grades: the allowed grades instead, in points, for example [0, 0.5, 1]; the largest is full points.
        accept: points from which a proof counts as accepted; by default full points.
        pattern: for traces that end in `### True` or `### False` and give the points before it: a regular expression
            whose one group is the points. Its last match counts; a trace that accepts gives full points.

    Raises:
        ConfigError: the grades are not two or more numbers from 0 on, or `accept` is not within them.
    """

    name = "grade"
    truth: Truth = "grade"
    prompt: Path | None = Path(str(files("pv_verdicts"))) / "prompts" / "grade.txt"

    def __init__(
        self,
        points: int = 7,
        grades: Sequence[float] | None = None,
        accept: float | None = None,
        pattern: str | None = None,
    ) -> None:
        listed = range(int(points) + 1) if grades is None else grades
        self.grades = tuple(sorted({float(one) for one in listed}))
        if len(self.grades) < 2 or self.grades[0] < 0:
            raise ConfigError(
                f"points={points!r}, grades={grades!r}; expected two or more grades, each 0 or more"
            )
        self.full = self.grades[-1]
        self.accept = self.full if accept is None else accept
        if not self.grades[0] < self.accept <= self.full:
            raise ConfigError(f"accept={accept!r}; expected above {self.grades[0]:g}, up to {self.full:g}")
        self.pattern = compile_pattern(pattern)

    def read(self, trace: str) -> Answer:
        if self.pattern is not None:
            return self._read_before_verdict(trace, self.pattern)
        given = last_line(trace, "Grade")
        points = None if given is None else self._points(given)
        if points is None:
            return Answer()
        return Answer(accepts=points >= self.accept, grade=points / self.full)

    def _read_before_verdict(self, trace: str, pattern: re.Pattern[str]) -> Answer:
        accepts = parse_verdict(trace)
        if accepts is not False:
            return Answer(accepts=accepts, grade=1.0 if accepts else None)
        given = last_match(trace, pattern)
        points = None if given is None else self._points(given)
        return Answer(accepts=False, grade=None if points is None else points / self.full)

    def _points(self, given: str) -> float | None:
        """`5`, `5/7`, `5 out of 7`, `0.5`; None where it is not an allowed grade."""
        part, _, whole = given.replace("out of", "/").partition("/")
        number = only_number(part) if whole and only_number(whole) == self.full else only_number(given)
        return next((one for one in self.grades if number is not None and abs(one - number) < 1e-9), None)

    def read_truth(self, value: object) -> float:
        if value is True or value is False or str(value).strip().casefold() in ("true", "false"):
            return float(str(value).strip().casefold() == "true")
        try:
            points = float(str(value))
        except ValueError:
            points = -1.0
        if not 0 <= points <= self.full:
            raise DataError(f"the grade of a row is {value!r:.80}; expected points from 0 to {self.full:g}")
        return points / self.full

    def score(self, answer: Answer, truth: float | int | bool) -> float:
        return 0.0 if answer.grade is None else 1.0 - abs(answer.grade - float(truth))
