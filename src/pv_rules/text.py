"""Text helpers of the rules: words, spans, the end of a trace, and lines of code or tables, which may repeat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import ascii_lowercase

from pv_rl import verdict
from pv_rl.hookspecs import Span

__all__ = [
    "LONG_LIST",
    "MOST_ENTRIES",
    "WORD",
    "end_of_trace",
    "is_short_code",
    "lowered",
    "merged",
    "without_code",
    "word_set",
]

EAST_ASIAN = r"\u3040-\u30ff\u4e00-\u9fff"
WORD = re.compile(rf"(?<![\\A-Za-z])(?:[^\W\d_{EAST_ASIAN}]{{2,}}|[{EAST_ASIAN}]{{1,2}})")
"""A word of natural language: two letters or more, no LaTeX command; Chinese and Japanese have no spaces between."""

MOST_ENTRIES = 48  # of a list, a table or code: natural ones have some forty
LONG_LIST = 8_000  # characters of a list with longer entries

STARTS = frozenset(ascii_lowercase + "|·&\\$([{}])<⟨_@")
ENDS = frozenset(".!?:…。！？：")
PROSE = re.compile(r"\b(?:[^\W\d_]{2,} ){4}[^\W\d_]{2}")
LONGEST_LINE = 200  # characters
OFTEN = 3  # times that a line of code occurs

end_of_trace = lru_cache(maxsize=8)(verdict.end_of_trace)
"""`pv_rl.verdict.end_of_trace`, cached because several rules call it."""


def lowered(text: str) -> str:
    """`text` in lower case and of the same length, so that spans of one are spans of the other."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)  # İ becomes two


def word_set(words: str) -> frozenset[str]:
    """The words of a text, set apart by white space."""
    return frozenset(words.split())


def merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order of their start, those that touch or overlap as one."""
    start, end = 0, -1
    for one, other in spans:
        if end >= one:
            end = max(end, other)
            continue
        if end > start:
            yield start, end
        start, end = one, other
    if end > start:
        yield start, end


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
