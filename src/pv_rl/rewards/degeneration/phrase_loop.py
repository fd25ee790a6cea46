"""A phrase of several words that is repeated back to back."""

from __future__ import annotations

from collections.abc import Iterator

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.tandem import tandem_repeats

__all__ = ["PHRASE_LOOP"]

SHORT_PHRASE = 3  # words; a shorter one may be an enumeration (red, blue, red, blue): four times the rounds


def find_phrase_loops(text: str, times: float, characters: float) -> Iterator[Span]:
    for repeat in tandem_repeats(text):
        if repeat.rounds < times or repeat.size < characters:
            continue
        words = repeat.words(text)
        if words >= SHORT_PHRASE or (words == 2 and repeat.rounds >= 4 * times):
            yield repeat.start, repeat.end


PHRASE_LOOP = DegenerationRule(
    name="phrase_loop",
    find=find_phrase_loops,
    thresholds=(
        Parameter(name="times", default=4, low=3, meaning="rounds of the same phrase, back to back"),
        Parameter(name="characters", default=80, low=48, meaning="length of all rounds together"),
    ),
    meaning="a phrase of two words or more, repeated exactly and back to back",
)
