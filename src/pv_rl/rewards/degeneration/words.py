"""Words of a text, and word lists."""

from __future__ import annotations

import re

__all__ = ["WORD", "lowered", "word_set"]

EAST_ASIAN = r"\u3040-\u30ff\u4e00-\u9fff"
WORD = re.compile(rf"(?<![\\A-Za-z])(?:[^\W\d_{EAST_ASIAN}]{{2,}}|[{EAST_ASIAN}]{{1,2}})")
"""A word of natural language: two letters or more, no LaTeX command; Chinese and Japanese have no spaces between."""


def lowered(text: str) -> str:
    """`text` in lower case and of the same length, so that spans of one are spans of the other."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)  # İ becomes two


def word_set(words: str) -> frozenset[str]:
    """The words of a text, set apart by white space."""
    return frozenset(words.split())
