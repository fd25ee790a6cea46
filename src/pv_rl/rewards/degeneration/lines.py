"""Detector of code lines and table rows, which may repeat where prose may not.

Such a line begins with a small letter or a sign that is not a list mark, does not end like a sentence, and has no five
words in a row.
"""

from __future__ import annotations

import re
from collections import Counter
from string import ascii_lowercase

__all__ = ["LONG_LIST", "MOST_ENTRIES", "is_short_code", "without_code"]

MOST_ENTRIES = 48  # of a list, a table or code: natural ones have some forty
LONG_LIST = 8_000  # characters of a list with longer entries

STARTS = frozenset(ascii_lowercase + "|·&\\$([{}])<⟨_@")
ENDS = frozenset(".!?:…。！？：")
PROSE = re.compile(r"\b(?:[^\W\d_]{2,} ){4}[^\W\d_]{2}")
LONGEST_LINE = 200  # characters
OFTEN = 3  # times that a line of code occurs


def is_short_code(repeat: str) -> bool:
    """Whether rounds of a repeat are code or rows of a table, not more of them than is natural. An empty line is
    neither; the first and the last line may be cut and are left out."""
    lines = repeat.split("\n")[1:-1]
    return 0 < len(lines) < MOST_ENTRIES and all(map(_is_code, lines))


def without_code(text: str) -> str:
    """`text` with blanks for rows of a table and for lines of code that occur often. Spans stay what they are."""
    lines = text.split("\n")
    if len(set(lines)) > len(lines) - OFTEN + 1 and "|\n" not in text:
        return text
    counts = Counter(lines)
    return "\n".join(
        " " * len(line) if _is_row(line) or (counts[line] >= OFTEN and _is_code(line)) else line
        for line in lines
    )


def _is_code(line: str) -> bool:
    line = line.strip()
    return (
        0 < len(line) <= LONGEST_LINE
        and line[0] in STARTS
        and line[-1] not in ENDS
        and not PROSE.search(line)
    )


def _is_row(line: str) -> bool:
    line = line.strip()
    return line.startswith("|") and line.endswith("|")
