"""Last line of a trace: where verdict formats look for an answer.

A trace is untrusted text of any length. The last `LONGEST_READ` characters before its end are read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

from pv_rl.errors import ConfigError
from pv_rl.verdict import after_thinking, end_of_trace, parse_verdict

__all__ = ["check_ending", "last_answers", "plain_digits", "read_number", "text_of"]

LONGEST_READ = 10_000
LONGEST_LINE = 400
"""Characters of a line that are read. In a longer one only its end is searched, for a box."""
LONGEST_TRUTH = 80
BEFORE = 400
"""Characters before an answer that are searched for words that deny or quote it."""

NUMBER = r"(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})"
QUANTITY = re.compile(rf"(?:(\d{{1,9}}) )?(\d{{1,9}}) ?/ ?(\d{{1,9}})|({NUMBER})")
FRACTION = re.compile(r"\\[dt]?frac(?:\{(\d{1,9})\}\{(\d{1,9})\}|(\d)(\d))")
STYLE = re.compile(r"\\(?:text|textbf|textit|mathbf|mathrm|bm|bf)\{([^{}]{0,60})\}")
BOX = re.compile(r"\\(?:boxed|fbox)\{\s{0,9}([^{}]{1,60})\}")
BEHIND_A_BOX = re.compile(r"(?:/ ?\d{1,9})?[\s.,。$)}\]\\*_]*(?:(?:points?|pts|分)[\s.。$)\]\\]*)?")
WHOLE = re.compile(r" ?/ ?\d{1,9}")
QUOTED_LINE = re.compile(r"[\s*+\-]*>")
# What math and emphasis leave on a line of their own.
EMPTY = re.compile(r"[\s$\\\[\]().*_\-=#]*")
# Full-width ASCII, fractions and slashes that have a code point of their own.
PLAIN = {0xFF01 + n: 0x21 + n for n in range(94)} | {0x3000: " ", 0x2044: "/", 0x2215: "/", 0x2212: "-"}
PLAIN |= {ord("½"): " 1/2", ord("¼"): " 1/4", ord("¾"): " 3/4", ord("⅓"): " 1/3", ord("⅔"): " 2/3"}


def last_answers(trace: str, mark: str, required: Sequence[str] = ()) -> tuple[str, ...]:
    r"""What the last line of a trace gives as its answer; more than one where it gives several.

    An answer is the rest of a line that begins with `### MARK:`, or the content of a `\boxed{}` that ends the line:

    - Only text after the last `</think>` counts, and a `<think>` that is never closed has no answer behind it.
    - The signs `#`, `:`, bold marks, white space and end-of-text marks are optional; digits, colon and slash may be
      full-width. Only a full stop and marks of math may follow the answer.
    - A quotation mark, a code fence and a line that begins with `>` make it a quotation; so do words right before it
      that deny or suppose it, as `pv_rl.verdict.parse_verdict` knows them (`far from \boxed{7}`).
    - Answers of the lines right before it count too, so that the caller can refuse those that contradict each other.

    Example: of "Step 3 divides by 0.\n### First wrong step: 3<|im_end|>" with the mark `First wrong step` it is ("3",).

    Args:
        trace: the trace, of any length. Takes time linear in it.
        mark: the words before the answer, in any case.
        required: texts that the trace has to contain after its thoughts; without one of them there is no answer.
    """
    text = after_thinking(trace)
    if not all(phrase in text for phrase in required):
        return ()
    end = end_of_trace(text)
    lines = re.split(r"[\r\n]", text[max(0, end - LONGEST_READ) : end])
    found: list[str] = []
    while lines:
        line = lines.pop()
        line = line[: end_of_trace(line)]
        if EMPTY.fullmatch(line):
            continue
        before = "\n".join(lines)[-BEFORE:] + "\n"
        answers = _marked(line, before, mark)
        if not answers:
            return tuple(found or _boxed(line, before))
        found = [*answers, *found]
    return tuple(found)


def plain_digits(text: str) -> str:
    """The text with ASCII in the place of full-width characters and fractions, and without invisible characters."""
    return "".join(one for one in text.translate(PLAIN) if unicodedata.category(one) != "Cf")


def read_number(text: str) -> float | None:
    """A number such as `5`, `0.5`, `1/2`, `½` or `2 1/2`, alone in the text; None for anything else."""
    found = QUANTITY.fullmatch(" ".join(plain_digits(text).split())) if len(text) <= LONGEST_LINE else None
    if found is None:
        return None
    whole, above, below, number = found.groups()
    if number is not None:
        return float(number)
    return int(whole or 0) + int(above) / int(below) if int(below) else None


def text_of(value: object) -> str:
    """A truth of a data file as text; the name of its type where that is longer than a truth can be."""
    try:
        text = str(value).strip()
    except ValueError:  # an int of more than 4,300 digits
        text = ""
    return text if 0 < len(text) <= LONGEST_TRUTH else f"a value of type {type(value).__name__}"


def check_ending(mark: object, require: object) -> tuple[str, tuple[str, ...]]:
    """The options `mark` and `require` of a format.

    Raises:
        ConfigError: they are not a text, and a text or a list of texts, that are not blank.
    """
    given = [require] if isinstance(require, str) else require
    texts = (
        [one for one in given if isinstance(one, str) and one.strip()]
        if isinstance(given, list | tuple)
        else None
    )
    if texts is None or len(texts) != len(given):
        raise ConfigError(
            f"require={require!r:.80}; expected texts that a trace has to contain, for example [Summary]"
        )
    if not isinstance(mark, str) or not mark.strip() or len(mark) > 60 or re.search(r"[\r\n*_]", mark):
        raise ConfigError(
            f"mark={mark!r:.80}; expected the words before the answer, for example Grade: one line of up to 60 "
            "characters without bold marks"
        )
    return " ".join(mark.strip().rstrip(":：").split()), tuple(texts)


def _marked(line: str, before: str, mark: str) -> list[str]:
    """The answers behind the mark, if the line begins with it. `before` is the text before the line."""
    if len(line) > LONGEST_LINE or QUOTED_LINE.match(line):
        return []
    plain = " ".join(_without_style(line).replace("*", " ").replace("_", " ").split())
    begin = _mark(mark).match(plain)
    if begin is None or not _meant(before):
        return []
    return [_bare(one) for one in _mark(mark).split(plain[begin.end() :])]


def _boxed(line: str, before: str) -> list[str]:
    """The contents of the boxes of a line that ends with one."""
    line = _without_style(line[-LONGEST_LINE:])
    boxes = list(BOX.finditer(line))
    if not boxes or QUOTED_LINE.match(line):
        return []
    first, behind = line[: boxes[0].start()], line[boxes[-1].end() :]
    if not BEHIND_A_BOX.fullmatch(behind) or not _meant(before + first.rstrip("$\\([ ")):
        return []
    whole = WHOLE.match(behind)
    return [_bare(box[1]) + (whole[0] if whole else "") for box in boxes]


@cache
def _mark(mark: str) -> re.Pattern[str]:
    words = re.escape(plain_digits(mark))
    return re.compile(rf"(?:[-+] )?#{{0,9}} ?(?<!\w)(?:final )?{words}(?!\w) ?[:=]? ?", re.IGNORECASE)


def _without_style(line: str) -> str:
    return STYLE.sub(r"\1", FRACTION.sub(r"\1\3/\2\4", plain_digits(line)))


def _bare(answer: str) -> str:
    """The answer without a box, marks of math, code marks and a full stop around it."""
    plain = re.sub(r"[$`]", " ", BOX.sub(r"\1", answer))
    return plain.strip(" \t\\()[]").rstrip(" \t.。\\()[]")


def _meant(before: str) -> bool:
    """Whether an answer behind these words is one, and not denied, quoted or supposed."""
    return parse_verdict(before.replace("#", " ") + "### True") is True
