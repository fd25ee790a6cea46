"""Rules on repeats: a phrase, a paragraph or a proof back to back; one character, word or line without end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pv_rl.hookspecs import Span
from pv_rules.fold import UNSEEN, Folded, folded
from pv_rules.rule import rule
from pv_rules.tandem import Tandem, tandem_repeats
from pv_rules.text import LONG_LIST, MOST_ENTRIES, is_short_code

__all__ = ["phrase_loop", "runaway_repetition"]

SHORT_PHRASE = 3  # words; a shorter one may be an enumeration (red, blue, red, blue) and needs more rounds
LONG_TEXT = 1_000  # characters said again: two rounds are a loop, and a quoted text has less than two
COUNTER = 80  # bytes for each number that changes; a computation changes more of them
FORMULAS = 400  # characters of a round without a word; shorter ones are lists of numbers
FORMULA_SIGNS = 20  # different ones in such a round
ENDLESS = 150  # entries of a list, however many numbers change
LIST_STEP = 200  # half of the shortest list without end


@rule(
    "a phrase of two words or more, a paragraph or a proof, repeated back to back",
    times=(4, 3, "rounds of a phrase, back to back; two or more if 1,000 characters come again"),
    characters=(80, 48, "length of all rounds together"),
)
def phrase_loop(text: str, times: float, characters: float) -> Iterator[Span]:
    fold = folded(text)
    loops = [one for one in tandem_repeats(fold.text) if _is_loop(fold, one, times, characters)]
    if loops:
        yield from (fold.span(loop.start, loop.end) for loop in loops)
        return
    for repeat in tandem_repeats(fold.pattern, LIST_STEP):
        if (repeat.rounds >= MOST_ENTRIES or 2 * repeat.size >= LONG_LIST) and _counts_on(fold, repeat):
            yield fold.pattern_span(repeat)


def _is_loop(fold: Folded, repeat: Tandem, times: float, characters: float) -> bool:
    if repeat.rounds < max(2, min(times, 1 + LONG_TEXT / repeat.period)):
        return False
    if repeat.rounds < 3 and "</think>" in fold.text[repeat.start : repeat.end]:
        return False  # a draft in the thoughts and the answer, with `</s>` at the end of both
    words = repeat.words(fold.text)
    least = 0 if words >= SHORT_PHRASE or _has_formulas(fold.text, repeat) else 4 * times
    if least and (words < 2 or repeat.rounds < (MOST_ENTRIES if repeat.is_list(fold.text) else least)):
        return False
    return len(fold.cut(repeat)) >= characters and not is_short_code(fold.cut(repeat.whole))


def _has_formulas(text: str, repeat: Tandem) -> bool:
    """Whether a round with hardly a word is formulas and not a row of a matrix."""
    return (
        repeat.period >= FORMULAS
        and len(set(text[repeat.start : repeat.start + repeat.period])) > FORMULA_SIGNS
    )


def _counts_on(fold: Folded, repeat: Tandem) -> bool:
    """Whether a list is longer than natural ones: with a counter in each entry, or with computed numbers."""
    changed = fold.changed_numbers(repeat)
    if not changed:
        return False
    start, end = fold.pattern_span(repeat)
    wordless = repeat.words(fold.pattern) == 0
    dense = changed * COUNTER > len(fold.original[start:end].encode("utf-8", "surrogatepass"))
    if dense or (wordless and repeat.period < FORMULAS):
        cut_off = repeat.end > len(fold.pattern) - repeat.period
        return repeat.rounds >= ENDLESS and (cut_off or not wordless)
    return repeat.rounds >= MOST_ENTRIES or (repeat.rounds >= 3 and end - start >= LONG_LIST)


FEW_SIGNS = 10  # different ones, in a row of a matrix or a nested root; a formula has more
LONG_FORMULA = 800  # characters of all rounds
HIDDEN = re.compile(rf"\s+|{UNSEEN}+")


@rule(
    "one letter, word, sign or wordless line, again and again",
    letters=(48, 45, "repetitions of one letter"),
    tokens=(16, 3, "repetitions of one word, over 48 characters or more"),
    signs=(300, 45, "length of a repetition without words, in characters"),
    lines=(MOST_ENTRIES, 3, "rounds of that repetition, if a round is longer than one character"),
)
def runaway_repetition(
    text: str, letters: float, tokens: float, signs: float, lines: float
) -> Iterator[Span]:
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
