"""Text from outside made safe to print, and numbers made short."""

from __future__ import annotations

import math
import re

__all__ = ["markdown", "natural", "number", "plain", "plural"]

LONGEST = 200
"""Characters of a label or a message that are shown."""
NUMBER = re.compile(r"((?:(?<![^=:\s])-)?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)", re.IGNORECASE)


def plain(text: object, longest: int = LONGEST) -> str:
    """One line of printable characters: no line break, no escape sequence, no half of a surrogate pair."""
    line = " ".join(str(text)[: 20 * longest].split())
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= longest else line[: longest - 3] + "..."


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


def number(value: float, like: float | None = None) -> str:
    """Three digits that count, as many decimals as `like` would have.

    Example: 0.71249 is 0.712; 412.3 is 412; 1.87 beside 0.6 is 1.870.
    """
    size = abs(value if like is None else like)
    if size and not 1e-3 <= size < 1e9:
        return f"{value:.3g}"
    decimals = max(0, 2 - math.floor(math.log10(size))) if size else 3
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def plural(count: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count} {noun}{'s' * (count != 1)}"
