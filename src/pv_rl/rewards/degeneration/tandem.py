"""Tandem repeats: a piece of text that is followed by itself again and again, with nothing between.

Every `STEP` characters the next copies of a short probe are looked up. The distance to a copy is a period if the text
goes on equal to itself at that distance. All of it is `str.find` and comparison of slices: linear time with a small
constant, in any script, with or without spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from pv_rl.rewards.degeneration.words import WORD

__all__ = ["Tandem", "tandem_repeats"]

STEP = 32
PROBE = 12
TRIES = 3  # a probe may occur more than once in one round
MAX_PERIOD = 600
CERTAIN_ROUNDS = 4  # nothing more is looked for inside a repeat of so many rounds


@dataclass(frozen=True)
class Tandem:
    """`text[start:end]` has this period throughout, and three rounds or more."""

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
        """Words that begin in one round, `text` being the text that was searched."""
        start = self.start + self.period  # in the first round a word may lack its beginning
        found = WORD.finditer(text, start, self.end)
        return sum(1 for _ in takewhile(lambda word: word.start() < start + self.period, found))


@lru_cache(maxsize=8)
def tandem_repeats(text: str) -> tuple[Tandem, ...]:
    """Tandem repeats of three rounds or more that are longer than a round and `STEP + PROBE` characters."""
    found: dict[tuple[int, int], Tandem] = {}
    at, last = 0, len(text) - PROBE
    while at < last:
        copy, done = at, at
        for _ in range(TRIES):
            copy = text.find(text[at : at + PROBE], copy + 1, at + MAX_PERIOD + PROBE)
            if copy < 0:
                break
            period, here = copy - at, text[at:copy]
            # Around any place in three rounds or more, a whole round lies before or behind it.
            if text[copy : copy + period] != here and (period > at or text[at - period : at] != here):
                continue
            start, end = at - _equal_before(text, at, copy), copy + _equal_after(text, at, copy)
            if end - start >= 3 * period:
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
    while (
        size + step <= one
        and text[one - size - step : one - size] == text[other - size - step : other - size]
    ):
        size, step = size + step, step * 2
    while step:
        if (
            size + step <= one
            and text[one - size - step : one - size] == text[other - size - step : other - size]
        ):
            size += step
        step //= 2
    return size
