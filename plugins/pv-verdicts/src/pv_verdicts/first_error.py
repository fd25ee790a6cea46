r"""Verdict format `first_error`: the number of the first wrong step, or none.

    reward = R_format * (1 where the step is exact, `near` where it is one beside it, else 0)

R_format is 1 where the trace has one answer and every text of `require`, else 0. Example: step 3 for a proof whose
first wrong step is 4, near 0.5: 0.5. A step may be larger than the number of the proof's steps; it is then wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pv_rl.errors import ConfigError, DataError
from pv_verdicts.ending import check_ending, last_answers, plain_digits, text_of
from pv_verdicts.formats import Answer, Truth
from pv_verdicts.pattern import compile_pattern, read_before_verdict

__all__ = ["FirstError"]

LARGEST = 10**9
NONE = re.compile(
    r"none|no|-1|no (?:error|wrong step|mistake)s?|(?:all|every) steps? (?:are|is) (?:right|correct)|[无無]"
)
STEP = re.compile(r"(?:step |step|s)?#?(\d{1,9})(?:\.0)?")


class FirstError:
    r"""A step behind `### First wrong step:`, or in `\boxed{}`, on the last line.

    Args:
        near: reward of a step one beside the right one, 0 to 1.
        first: number of a proof's first step in traces and labels, 0 or 1. A label of -1 is no error, as in
            ProcessBench, and 0 too where steps are counted from 1.
        pattern: for traces that end in `### True` or `### False` and name the step before it: a regular expression
            whose one group is the step, searched in the last 2,000 characters for at most 0.2 s. Its last match
            counts; a trace that accepts has no wrong step. Needs the package regex.
        require, mark: as in `Grade`.

    Raises:
        ConfigError: an option is out of bounds.
        SetupError: there is a pattern, and the package regex is not installed.
    """

    name = "first_error"
    truth: Truth = "first_error"
    grades: tuple[float, ...] = ()
    accept = 1.0
    prompt: Path | None = Path(str(files("pv_verdicts"))) / "prompts" / "first_error.txt"

    def __init__(
        self,
        near: float = 0.0,
        first: int = 1,
        pattern: str | None = None,
        require: Sequence[str] = (),
        mark: str = "First wrong step",
    ) -> None:
        if isinstance(near, bool) or not isinstance(near, int | float) or not 0 <= near <= 1:
            raise ConfigError(
                f"near={near!r:.80}; expected the reward of a step beside the right one, 0 to 1"
            )
        if isinstance(first, bool) or first not in (0, 1):
            raise ConfigError(f"first={first!r:.80}; expected 0 or 1, the number of a proof's first step")
        self.near, self.first = near, int(first)
        self.pattern = None if pattern is None else compile_pattern(pattern)
        self.mark, self.require = check_ending(mark, require)

    def read(self, trace: str) -> Answer:
        if self.pattern is not None:
            accepts, found = read_before_verdict(trace, self.pattern, self.require)
            step = 0 if accepts else None if found is None else self._step(found) or None
            return Answer(accepts=accepts, first_error=step)
        answers = last_answers(trace, self.mark, self.require)
        steps = {self._step(given) for given in answers}
        step = steps.pop() if len(steps) == 1 else None
        return Answer() if step is None else Answer(accepts=step == 0, first_error=step)

    def _step(self, given: str) -> int | None:
        """From 1, 0 for none; None where it is neither."""
        text = " ".join(plain_digits(given).split()).rstrip(".").casefold()
        if NONE.fullmatch(text) or (text == "0" and self.first == 1):
            return 0
        number = STEP.fullmatch(text)
        step = int(number[1]) - self.first + 1 if number else 0
        return step if step > 0 else None

    def read_truth(self, value: object) -> int:
        """A whole number from -1, also as text or as a float without a fraction, see `first`."""
        text = text_of(value)
        try:
            step = float(text) if "_" not in text else None
        except ValueError:
            step = None
        if step is None or not -1 <= step < LARGEST or step != int(step):
            raise DataError(
                f"the first wrong step of a row is {text!r}; expected a whole number, -1 for none. Correct the row, "
                "or name its key of extra_info in truth_key"
            )
        return 0 if step < self.first else int(step) - self.first + 1

    def score(self, answer: Answer, truth: float | int | bool) -> float:
        if answer.first_error is None:
            return 0.0
        if answer.first_error == truth:
            return 1.0
        return self.near if answer.first_error and truth and abs(answer.first_error - truth) == 1 else 0.0
