"""One character, one token or one line that does not stop."""

from __future__ import annotations

from collections.abc import Iterator

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.tandem import Tandem, tandem_repeats

__all__ = ["RUNAWAY_REPETITION"]


def find_runaways(text: str, letters: float, tokens: float, signs: float, lines: float) -> Iterator[Span]:
    for repeat in tandem_repeats(text):
        if _runs_away(text, repeat, letters, tokens, signs, lines):
            yield repeat.start, repeat.end


def _runs_away(text: str, repeat: Tandem, letters: float, tokens: float, signs: float, lines: float) -> bool:
    if repeat.period == 1:
        return repeat.size >= (letters if text[repeat.start].isalpha() else signs)
    if repeat.rounds < min(tokens, lines):
        return False
    words = repeat.words(text)
    if words == 1:
        return repeat.rounds >= tokens
    # Mathematics repeats signs, digits and wordless lines of its own: rules, matrices, repeating decimals.
    return words == 0 and repeat.size >= signs and repeat.rounds >= lines


RUNAWAY_REPETITION = DegenerationRule(
    name="runaway_repetition",
    find=find_runaways,
    thresholds=(
        Parameter(name="letters", default=48, low=45, meaning="the same letter so often"),
        Parameter(
            name="tokens", default=16, low=3, meaning="the same word so often, over 48 characters at least"
        ),
        Parameter(name="signs", default=300, low=45, meaning="characters of a repeat without a word in it"),
        Parameter(
            name="lines", default=20, low=3, meaning="and rounds of it, if a round is not one character"
        ),
    ),
    meaning="one letter, word, sign or wordless line, again and again",
)
