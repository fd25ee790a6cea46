"""A phrase, a paragraph or a whole proof that is repeated back to back, plainly or in disguise."""

from __future__ import annotations

from collections.abc import Iterator

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.fold import Folded, folded
from pv_rl.rewards.degeneration.lines import LONG_LIST, MOST_ENTRIES, is_short_code
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.tandem import Tandem, tandem_repeats

__all__ = ["PHRASE_LOOP"]

SHORT_PHRASE = 3  # words; a shorter one may be an enumeration (red, blue, red, blue) and needs more rounds
LONG_TEXT = 1_000  # characters said again: two rounds are a loop, and a quoted text has less than two
COUNTER = 80  # bytes for each number that changes; a computation changes more of them
FORMULAS = 400  # characters of a round without a word; shorter ones are lists of numbers
FORMULA_SIGNS = 20  # different ones in such a round
ENDLESS = 150  # entries of a list, however many numbers change
LIST_STEP = 200  # half of the shortest list without end


def find_phrase_loops(text: str, times: float, characters: float) -> Iterator[Span]:
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


PHRASE_LOOP = DegenerationRule(
    name="phrase_loop",
    find=find_phrase_loops,
    thresholds=(
        Parameter(
            name="times",
            default=4,
            low=3,
            meaning="rounds of the same phrase, back to back; two to times where 1,000 characters are said again",
        ),
        Parameter(name="characters", default=80, low=48, meaning="length of all rounds together"),
    ),
    meaning="a phrase of two words or more, a paragraph or a proof, repeated back to back",
)
