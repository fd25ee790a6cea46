r"""Verdict format `first_error`: the number of the first wrong step, or none.

    reward = R_format * (1 where the step is exact, `near` where it is one beside it, else 0)

R_format is 1 where the trace has one answer and every text of `require`, else 0. Example: step 3 for a proof whose
first wrong step is 4, near 0.5: 0.5. A step may be larger than the number of the proof's steps; it is then wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from pv_rl.errors import ConfigError, DataError, SetupError
from pv_rl.verdict import after_thinking, parse_verdict
from pv_verdicts.ending import check_ending, last_answers, plain_digits, text_of
from pv_verdicts.formats import Answer, Truth

__all__ = ["FirstError"]

LONGEST_PATTERN = 2000
"""Characters of a pattern, and at the end of a trace that it is searched in."""
PATTERN_S = 0.2
"""Seconds that a pattern may search. A trace that takes longer names no step."""
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
        self.pattern = None if pattern is None else _compiled(pattern)
        self.mark, self.require = check_ending(mark, require)

    def read(self, trace: str) -> Answer:
        if self.pattern is not None:
            return self._searched(trace)
        answers = last_answers(trace, self.mark, self.require)
        steps = {self._step(given) for given in answers}
        step = steps.pop() if len(steps) == 1 else None
        return Answer() if step is None else Answer(accepts=step == 0, first_error=step)

    def _searched(self, trace: str) -> Answer:
        """The verdict, and the step that the pattern finds before it."""
        text = after_thinking(trace)
        verdict = parse_verdict(trace) if all(phrase in text for phrase in self.require) else None
        if verdict is None:
            return Answer()
        if verdict:
            return Answer(accepts=True, first_error=0)
        found: list[str] = []
        with suppress(TimeoutError):
            found = self.pattern.findall(text[-LONGEST_PATTERN:], timeout=PATTERN_S)
        return Answer(accepts=False, first_error=(self._step(found[-1]) if found else None) or None)

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


def _compiled(pattern: object) -> Any:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise ConfigError(
            f"pattern={pattern!r:.80}; expected a regular expression as text, for example 'S(\\d+) is'"
        )
    try:
        import regex  # unlike re, it can stop a search that takes too long
    except ImportError as error:
        raise SetupError(
            f"the option pattern needs the package regex, which cannot be imported ({error}): pip install regex"
        ) from error
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ConfigError(f"pattern={pattern!r:.80} is not a regular expression: {error}") from error
    if compiled.groups != 1:
        raise ConfigError(
            f"pattern={pattern!r:.80} has {compiled.groups} groups; expected one, the step's number"
        )
    return compiled
