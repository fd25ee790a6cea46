"""Where a trace ends, read as `pv_rl.verdict.parse_verdict` reads it."""

from __future__ import annotations

from functools import lru_cache

from pv_rl.verdict import END_OF_TEXT, INVISIBLE

__all__ = ["end_of_trace"]


@lru_cache(maxsize=8)
def end_of_trace(text: str) -> int:
    """The offset behind the last character that is neither white space nor part of an end-of-text mark."""
    end = len(text)
    while True:
        while end > 0 and (text[end - 1].isspace() or text[end - 1] in INVISIBLE):
            end -= 1
        mark = END_OF_TEXT.search(text, max(0, end - 60), end)
        if mark is None:
            return end
        end = mark.start()
