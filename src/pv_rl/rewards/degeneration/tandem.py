"""Tandem repeats: a piece of text that is followed by itself again and again, with nothing between.

Every `STEP` characters the next copies of a short probe are looked up. The distance to a copy is a period if the text
goes on equal to itself at that distance. All of it is `str.find` and comparison of slices: linear time with a small
constant, in any script, with or without spaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["WORD", "Tandem", "tandem_repeats"]

STEP = 32
PROBE = 12
TRIES = 3  # a probe may occur more than once in one round
MAX_PERIOD = 600
CERTAIN_ROUNDS = 4  # nothing more is looked for inside a repeat of so many rounds
WORD = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{2,}")  # of natural language: a LaTeX command is none


@dataclass(frozen=True)
class Tandem:
    """`text[start:end]` has this period throughout, and at least twice."""

    start: int
    end: int
    period: int
    """Characters of one round, at most `MAX_PERIOD`."""

    @property
    def size(self) -> int:
        """Characters of all rounds."""
        return self.end - self.start

    @property
    def rounds(self) -> float:
        return self.size / self.period

    def words(self, text: str) -> int:
        """Words of two letters or more in one round; LaTeX commands are none."""
        return len(WORD.findall(text, self.start, self.start + self.period))


@lru_cache(maxsize=8)
def tandem_repeats(text: str) -> tuple[Tandem, ...]:
    """Tandem repeats that are longer than a round and `STEP + PROBE` characters; of shorter ones, some."""
    found: dict[tuple[int, int], Tandem] = {}
    at, last = 0, len(text) - PROBE
    while at < last:
        copy, done = at, at
        for _ in range(TRIES):
            copy = text.find(text[at : at + PROBE], copy + 1, at + MAX_PERIOD + PROBE)
            if copy < 0:
                break
            period = copy - at
            start, end = at - _equal_before(text, at, copy), copy + _equal_after(text, at, copy)
            if end - start >= 2 * period and (start, end) not in found:
                found[start, end] = Tandem(start, end, period)
            if end - start >= CERTAIN_ROUNDS * period:
                done = end - PROBE
                break
        at = max(done, at) + STEP
    return tuple(found.values())


def _equal_after(text: str, one: int, other: int) -> int:
    """How many characters from `one` on equal those from `other` on, where `one < other`."""
    size, step = 0, 32
    while text[one + size : one + size + step] == text[other + size : other + size + step]:
        size, step = size + step, step * 2
    while step:
        if text[one + size : one + size + step] == text[other + size : other + size + step]:
            size += step
        step //= 2
    return size


def _equal_before(text: str, one: int, other: int) -> int:
    """How many characters up to `one` equal those up to `other`, where `one < other`."""
    size, step = 0, 32
    while size + step <= one and text[one - size - step : one - size] == text[other - size - step : other - size]:
        size, step = size + step, step * 2
    while step:
        if size + step <= one and text[one - size - step : one - size] == text[other - size - step : other - size]:
            size += step
        step //= 2
    return size
