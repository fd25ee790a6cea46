"""Text and number formatting: text from outside made safe to print, numbers made short."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

__all__ = [
    "INTERVAL",
    "MISSING",
    "coefficient",
    "counted",
    "duration",
    "estimate",
    "markdown",
    "natural",
    "number",
    "one_line",
    "p_value",
    "percent",
    "plain",
    "plural",
    "points",
    "redact",
    "shorten",
    "visible",
    "whole",
]

MISSING = "-"
"""Shown in the place of a number that does not exist."""
LONGEST = 200
"""Characters of a label or a message that are shown."""
NUMBER = re.compile(r"((?:(?<![^=:\s])-)?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)", re.IGNORECASE)
INTERVAL = re.compile(r"([^\s()]{1,30}) (\([^\s()]{1,30} to [^\s()]{1,30}\))")
"""A number and its interval, as `estimate` writes them."""
SECRET = re.compile(
    r"""(?ix) \b(?:sk|pk|rk)-[\w-]{16,}          # OpenAI's and those that copy its form
        | \b(?:hf|ghp|gho|glpat|xox[abp]|wandb)[_-][\w-]{16,}
        | \bAKIA[0-9A-Z]{16}\b
        | (?<=bearer\s)[\w.~+/=-]{8,}
        | (?<=key=)[^\s&"']{8,} | (?<=key:\s)[^\s&"']{8,} | (?<=token=)[^\s&"']{8,} | (?<=password=)\S{4,}
        | (?<=://)[^\s/@:]+:[^\s/@]+(?=@)        # user:password@host
    """
)


def plain(text: object, longest: int = LONGEST) -> str:
    """A short label: one line of printable characters, cut to `longest`; what is not printable is dropped."""
    line = " ".join(str(text)[: 20 * longest].split())
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= longest else line[: longest - 3] + "..."


def shorten(text: object, longest: int) -> str:
    """A label as `plain` has it, cut in the middle: what tells two names apart is often at an end.

    Example: `shorten("checkpoints/step-100/eta-0.6", 15)` is `checkp...ta-0.6`.
    """
    line = plain(text, 10_000)
    if len(line) <= longest:
        return line
    last = (longest - 3) // 2
    return f"{line[: longest - 3 - last]}...{line[len(line) - last :]}"


def visible(text: str) -> str:
    """Text with line breaks and tabs kept, and every other character that is not printable as an escape.

    Example: an escape character is `\\x1b`, a right-to-left override `\\u202e`, half a surrogate pair `\\ud800`.
    """
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    odd = [one for one in set(unified) if one not in "\n\t" and not one.isprintable()]
    return unified.translate({ord(one): _escape(one) for one in odd}) if odd else unified


def _escape(character: str) -> str:
    # white space such as a no-break space is not printable for Python, and harmless
    return " " if character.isspace() and ord(character) > 0x7F else ascii(character)[1:-1]


def one_line(text: str) -> str:
    """`visible` text in one line: line breaks as `⏎`, secrets removed."""
    return visible(redact(text)).replace("\n", "⏎ ").replace("\t", " ")


def redact(text: str) -> str:
    """Text with what looks like a key or a password replaced by `***`. An error that verl printed may hold one."""
    return SECRET.sub("***", text)


def markdown(text: str) -> str:
    """Plain text as Markdown that shows it, in a table too: no markup, no HTML, no link.

    Example: `a|b <i>` is `a\\|b \\<i\\>`.
    """
    escaped = re.sub(r"([\\`*_\[\]<>|~&$])", r"\\\1", text)
    escaped = re.sub(r"^([0-9]*)(#|[-+.)](?=\s))", r"\1\\\2", escaped)  # neither a list nor a heading
    return re.sub(r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)", r"\\", escaped)  # neither http:// nor www. is a link


def natural(text: str) -> list[tuple[int, float, str]]:
    """A key to sort by, numbers in it by their value: `eta=0.3` before `eta=1` before `eta=10`."""
    parts = NUMBER.split(text)
    return [(0, float(part), "") if place % 2 else (1, 0.0, part) for place, part in enumerate(parts)]


def number(value: float | None, like: float | None = None) -> str:
    """Three significant digits, as many decimals as `like` would have.

    Example: 0.71249 is 0.712; 412.3 is 412; 1.87 beside 0.6 is 1.870.
    """
    if value is None or math.isnan(value):
        return MISSING
    size = abs(value if like is None else like)
    if size and not 1e-3 <= size < 1e9:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(size))) if size else 3
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def estimate(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    show: Callable[[float], str] | None = None,
) -> str:
    """A value and its interval: `0.712 (0.650 to 0.774)`; without an interval `0.712`; without a value `-`.

    Args:
        value: None or NaN where there is none, as are `low` and `high`.
        low: lower end of the interval.
        high: upper end.
        show: formats one number; by default `number`, with the decimals of `value` for all three.
    """
    if value is None or math.isnan(value):
        return MISSING
    one = show or (lambda each: number(each, value))
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return one(value)
    return f"{one(value)} ({one(low)} to {one(high)})"


def percent(value: float | None) -> str:
    """A share in percent with one decimal, without the sign: 0.687 is `68.7`."""
    return MISSING if value is None or math.isnan(value) else f"{100 * value + 0.0:.1f}"


def points(value: float) -> str:
    """A difference of shares in percentage points: -0.021 is `-2.1`."""
    return f"{100 * value + 0.0:+.1f}"


def coefficient(value: float | None) -> str:
    """Three decimals, for kappa and the like."""
    return MISSING if value is None or math.isnan(value) else f"{value + 0.0:.3f}"


def whole(value: float | None) -> str:
    """A whole number with thousands separated."""
    return MISSING if value is None or math.isnan(value) else f"{value:,.0f}"


def p_value(p: float) -> str:
    """`< 0.001`, or three decimals."""
    return MISSING if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def plural(count: int, noun: str, form: str = "") -> str:
    """`1 run`, `2 runs`; `2,000 runs` with the format `,`."""
    return f"{count:{form}} {noun}{'s' * (count != 1)}"


def counted(count: int, what: str, form: str = "") -> str:
    """`1 pair without votes`, `2 pairs without votes`, from `pairs without votes`."""
    return f"{count:{form}} " + (re.sub(r"s\b", "", what, count=1) if count == 1 else what)


def duration(seconds: float) -> str:
    """`12 s`, `5 min`, `3.4 h`, `2.1 days`."""
    for size, unit, digits in ((86400, "days", 1), (3600, "h", 1), (60, "min", 0)):
        if seconds >= size * (1.5 if unit == "min" else 1):
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
