r"""Verdict format `first_error`: the number of the first wrong step, or none.

    reward = 1 where the step is exact, `near` where it is one beside it, else 0

and 0 for a trace without an answer. Example: step 3 for a proof whose first wrong step is 4, near 0.5: 0.5.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pv_rl.errors import ConfigError, DataError
from pv_rl.verdict import parse_verdict
from pv_verdicts.ending import compile_pattern, last_line, last_match, only_number
from pv_verdicts.formats import Answer, Truth

__all__ = ["FirstError"]

NONE = ("none", "no", "-1", "0", "no error", "all steps are right")


class FirstError:
    r"""A step behind `### First wrong step:`, or in `\boxed{}`, on the last line.

    Args:
        near: reward of a step one beside the right one, 0 to 1.
        first: number of a proof's first step in traces and labels, 0 or 1. A label of -1 is no error, as in
            ProcessBench, and 0 too where steps are counted from 1.
        pattern: for traces that end in `### True` or `### False` and name the step before it: a regular expression
            whose one group is the step. Its last match counts; a trace that accepts has no wrong step, and one that
            rejects without a step has no answer.

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
        self.pattern = compile_pattern(pattern)

    def read(self, trace: str) -> Answer:
        if self.pattern is None:
            step = self._step(last_line(trace, "First wrong step"))
            return Answer() if step is None else Answer(accepts=step == 0, first_error=step)
        accepts = parse_verdict(trace)
        if accepts is not False:
            return Answer(accepts=accepts, first_error=0 if accepts else None)
        return Answer(accepts=False, first_error=self._step(last_match(trace, self.pattern)) or None)

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
