"""One character, one token or one line that does not stop."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.fold import UNSEEN, Folded, folded
from pv_rl.rewards.degeneration.lines import LONG_LIST, MOST_ENTRIES, is_short_code
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.tandem import Tandem, tandem_repeats

__all__ = ["RUNAWAY_REPETITION"]

FEW_SIGNS = 10  # different ones, in a row of a matrix or a nested root; a formula has more
LONG_FORMULA = 800  # characters of all rounds
HIDDEN = re.compile(rf"\s+|{UNSEEN}+")


def find_runaways(text: str, letters: float, tokens: float, signs: float, lines: float) -> Iterator[Span]:
    fold = folded(text)
    for repeat in tandem_repeats(fold.text):
        if _runs_away(fold, repeat, letters, tokens, signs, lines):
            yield fold.span(repeat.start, repeat.end)
    for match in _folded_away(text, int(signs)):
        for repeat in tandem_repeats(match[0]):
            if repeat.size >= signs and (repeat.rounds >= lines or repeat.size >= LONG_LIST):
                yield match.start() + repeat.start, match.start() + repeat.end


def _runs_away(
    fold: Folded, repeat: Tandem, letters: float, tokens: float, signs: float, lines: float
) -> bool:
    one = fold.text[repeat.start : repeat.start + repeat.period]
    if repeat.period == 1:
        return repeat.size >= (letters if one.isalpha() else signs)
    if repeat.rounds < min(tokens, lines) and repeat.size < LONG_LIST:
        return False
    words = repeat.words(fold.text)
    if words == 1:
        # A list of the same word is set apart by commas; code has it on lines.
        return repeat.rounds >= (lines if repeat.is_list(fold.text) else tokens) and not is_short_code(
            fold.cut(repeat.whole)
        )
    original = fold.cut(repeat) if words == 0 else ""
    if len(original) < signs:
        return False
    # Mathematics repeats signs, digits and wordless lines of its own: rules, matrices, repeating decimals, roots.
    if len(set(one)) > FEW_SIGNS and repeat.rounds >= tokens and len(original) >= LONG_FORMULA:
        return True
    rows = original.strip().count("\n")
    return (rows or repeat.rounds) >= lines or repeat.size >= LONG_LIST


def _folded_away(text: str, size: int) -> Iterator[re.Match[str]]:
    """White space and unseen characters, `size` or more in a row."""
    half = size // 2
    if any(HIDDEN.fullmatch(text, at, at + half) for at in range(0, len(text), half)):
        yield from (match for match in HIDDEN.finditer(text) if len(match[0]) >= size)


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
            name="lines",
            default=MOST_ENTRIES,
            low=3,
            meaning="and rounds of it, if a round is not one character",
        ),
    ),
    meaning="one letter, word, sign or wordless line, again and again",
)
