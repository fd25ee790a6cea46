"""Tandem repeats: a piece of text that is followed by itself again and again, with nothing between.

The search samples the text. At each sample it looks for the next copies of a short probe; the distance to a copy is a
period if the text goes on equal to itself at that distance. Short periods need dense samples and a short window. For
longer ones samples thin out as the window grows, so each doubling of the period costs the same, and all periods up to
half the text cost O(n log n), nearly all of it in `str.find` and comparison of slices.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from pv_rules.text import WORD

__all__ = ["LONG", "Tandem", "tandem_repeats"]

LIST = re.compile(r"[,;&|]")
STEP, PROBE = 32, 12  # for periods below `LONG`
LONG = 600
LONG_PROBE = 48
SAMPLES = 4  # a period of `LONG` characters or more
TRIES = 3  # a probe may occur more than once in one round
CERTAIN_ROUNDS = 4  # nothing more is looked for inside a short repeat of so many rounds


@dataclass(frozen=True)
class Tandem:
    """`text[start:end]` has this period throughout, and three rounds or more, or two of `LONG` characters or more."""

    start: int
    end: int
    period: int
    """Characters of one round."""

    @property
    def size(self) -> int:
        """Characters of all rounds."""
        return self.end - self.start

    @property
    def rounds(self) -> float:
        return self.size / self.period

    @property
    def whole(self) -> Tandem:
        """Its whole rounds."""
        return replace(self, end=self.start + self.size // self.period * self.period)

    def is_list(self, text: str) -> bool:
        """Whether a sign in each round sets the entries of a list apart."""
        return LIST.search(text, self.start, self.start + self.period) is not None

    def words(self, text: str) -> int:
        """Words that begin in one round, `text` being the text that was searched."""
        start = self.start + self.period  # in the first round a word may lack its beginning
        found = WORD.finditer(text, start, self.end)
        return sum(1 for _ in takewhile(lambda word: word.start() < start + self.period, found))


@lru_cache(maxsize=8)
def tandem_repeats(text: str, step: int = STEP) -> tuple[Tandem, ...]:
    """Tandem repeats of the text: of three rounds or more that are longer than a round and `step + PROBE` characters,
    and of two rounds or more of `LONG` characters or more."""
    found: dict[tuple[int, int], Tandem] = {}
    _search_short(text, step, found)
    shortest = LONG
    while 2 * shortest <= len(text):
        _search_long(text, shortest, found)
        shortest *= 2
    return tuple(found.values())


def _search_short(text: str, step: int, found: dict[tuple[int, int], Tandem]) -> None:
    at, last = 0, len(text) - PROBE
    while at < last:
        probe, done, end = text[at : at + PROBE], at, at + LONG + PROBE
        copy, tries = text.find(probe, at + 1, end), 1
        while copy >= 0:
            period, here = copy - at, text[at:copy]
            # Around any place in three rounds or more, a whole round lies before or behind it.
            if text[copy : copy + period] == here or (period <= at and text[at - period : at] == here):
                repeat = _repeat(text, at, copy)
                if repeat.rounds >= 3:
                    found[repeat.start, repeat.end] = repeat
                if repeat.rounds >= CERTAIN_ROUNDS:
                    done = repeat.end - PROBE
                    break
            if tries == TRIES:
                break
            copy, tries = text.find(probe, copy + 1, end), tries + 1
        at = max(done, at) + step


def _search_long(text: str, shortest: int, found: dict[tuple[int, int], Tandem]) -> None:
    """Look for periods from `shortest` to twice that."""
    at, last = 0, len(text) - shortest - LONG_PROBE
    while at < last:
        copy, done, probe = at + shortest - 1, at, LONG_PROBE
        for _ in range(TRIES):
            copy = text.find(text[at : at + probe], copy + 1, at + 2 * shortest + probe)
            if copy < 0:
                break
            repeat = _repeat(text, at, copy)
            if repeat.rounds >= 2:
                found.setdefault((repeat.start, repeat.end), repeat)
                done = repeat.end - shortest
                break
            probe = min(
                4 * probe, shortest // SAMPLES
            )  # what was found too early is told apart by a longer one
        at = max(done, at) + shortest // SAMPLES


def _repeat(text: str, one: int, other: int) -> Tandem:
    """The longest piece around `text[one:other]` in which the text equals itself `other - one` characters later."""

    def equal(begin: int, end: int) -> bool:
        return text[one + begin : one + end] == text[other + begin : other + end]

    after = _longest(equal)
    before = _longest(lambda near, far: far <= one and equal(-far, -near))
    return Tandem(one - before, other + after, other - one)


def _longest(equal: Callable[[int, int], bool]) -> int:
    """The largest size for which `equal(0, size)`, by steps that grow and then shrink."""
    size, step = 0, 32
    while equal(size, size + step):
        size, step = size + step, step * 2
    while step:
        if equal(size, size + step):
            size += step
        step //= 2
    return size
