r"""Verdict format `first_error`: the number of the first wrong step, or none.

    reward = 1 where the step is exact, `near` where it is one beside it, else 0

and 0 for a trace without an answer. Example: step 3 for a proof whose first wrong step is 4, near 0.5: 0.5.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from pv_rl.errors import ConfigError, DataError
from pv_rl.verdict import parse_verdict
from pv_verdicts.ending import last_line, only_number
from pv_verdicts.formats import Answer, Truth

__all__ = ["FirstError"]

LONGEST_PATTERN = 2000
"""Characters at the end of a trace that a pattern is searched in."""
NONE = ("none", "no", "-1", "0", "no error", "all steps are right")


class FirstError:
    r"""A step behind `### First wrong step:`, or in `\boxed{}`, on the last line.

    Args:
        near: reward of a step one beside the right one, 0 to 1.
        first: number of a proof's first step in traces and labels, 0 or 1. A label of -1 is no error, as in
            ProcessBench, and 0 too where steps are counted from 1.
        pattern: for traces that end in `### True` or `### False` and name the step before it: a regular expression
            whose one group is the step. Its last match counts; a trace that accepts has no wrong step.

    Raises:
        ConfigError: an option is out of bounds.
    """

    name = "first_error"
    truth: Truth = "first_error"
    grades: tuple[float, ...] = ()
    prompt: Path | None = Path(str(files("pv_verdicts"))) / "prompts" / "first_error.txt"

    def __init__(self, near: float = 0.0, first: int = 1, pattern: str | None = None) -> None:
        if not 0 <= near <= 1 or first not in (0, 1):
            raise ConfigError(f"near={near!r}, first={first!r}; expected 0 to 1, and 0 or 1")
        self.near, self.first = near, first
        try:
            self.pattern = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"pattern={pattern!r} is not a regular expression: {error}") from error
        if self.pattern is not None and self.pattern.groups != 1:
            raise ConfigError(
                f"pattern={pattern!r} has {self.pattern.groups} groups; expected one, the step's number"
            )

    def read(self, trace: str) -> Answer:
        found = self._found(trace) if self.pattern else last_line(trace, "First wrong step")
        step = self._step(found)
        return Answer() if step is None else Answer(accepts=step == 0, first_error=step)

    def _found(self, trace: str) -> str | None:
        assert self.pattern is not None
        verdict = parse_verdict(trace)
        found = self.pattern.findall(trace[-LONGEST_PATTERN:]) if verdict is False else []
        return "none" if verdict else found[-1] if found else None

    def _step(self, given: str | None) -> int | None:
        """From 1, 0 for none."""
        if given is None:
            return None
        text = given.strip().rstrip(".").casefold()
        if text in NONE and not (text == "0" and self.first == 0):
            return 0
        number = only_number(text.removeprefix("step").strip())
        if number is None or number != int(number) or number < self.first:
            return None
        return int(number) - self.first + 1

    def read_truth(self, value: object) -> int:
        try:
            step = float(str(value))
        except ValueError:
            step = 0.5
        if step != int(step) or step < -1:
            raise DataError(
                f"the first wrong step of a row is {value!r:.80}; expected a whole number from -1"
            )
        return 0 if step < self.first else int(step) - self.first + 1

    def score(self, answer: Answer, truth: float | int | bool) -> float:
        if answer.first_error is None:
            return 0.0
        if answer.first_error == truth:
            return 1.0
        return self.near if answer.first_error and truth and abs(answer.first_error - truth) == 1 else 0.0
