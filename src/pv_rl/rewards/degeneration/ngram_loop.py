"""A phrase that comes back nearly the same: almost every three words in a row have just been said.

One new word in a round makes three new triples. So with the defaults (27 old triples of 30 are needed, and old means
28 words ago at most) no list is a loop whose every entry has a word or number of its own: "Step 7 is wrong because
step 6 is wrong" may follow the same sentence about step 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from operator import sub

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.lines import without_code
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span

__all__ = ["NGRAM_LOOP"]

SET = re.compile(b"\\x01+")
TOKEN = re.compile(r"\S+")
PUNCTUATION = ".,;:!?()[]\"'*_`“”‘’#"
WORDY = 0.4  # such a part of a stretch is words of two letters or more: matrices and tables are none


def find_ngram_loops(text: str, words: float, share: float, within: float) -> Iterator[Span]:
    said = [word for token in text.lower().split() if (word := token.strip(PUNCTUATION))]
    if len(said) - 2 - len(set(_triples(said))) < share * words:
        return  # triples that occurred before, anywhere
    old = _in_stretches(_just_said(said, within), int(words))
    if max(old, default=0) < share * words:
        return
    if (prose := without_code(text)) != text:
        yield from find_ngram_loops(prose, words, share, within)
        return
    plain = _in_stretches([len(word) > 1 and word.isalpha() for word in said], int(words))
    loops = bytes(
        count >= share * words and wordy >= WORDY * words for count, wordy in zip(old, plain, strict=False)
    )
    tokens = [match.span() for match in TOKEN.finditer(text) if match[0].strip(PUNCTUATION)]
    for loop in SET.finditer(loops):
        yield tokens[loop.start()][0], tokens[loop.end() + int(words)][1]


def _triples(said: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    return zip(said, islice(said, 1, None), islice(said, 2, None), strict=False)


def _just_said(said: Sequence[str], within: float) -> list[bool]:
    """Of each triple: whether it occurred among the last `within` ones."""
    last: dict[tuple[str, str, str], int] = {}
    never, old = -len(said) - within, []
    for place, triple in enumerate(_triples(said)):
        old.append(place - last.get(triple, never) <= within)
        last[triple] = place
    return old


def _in_stretches(marks: Sequence[bool], size: int) -> list[int]:
    """How many of `size` marks in a row are set, by the first of them."""
    sums = list(accumulate(marks, initial=0))
    return list(map(sub, islice(sums, size, None), sums))


NGRAM_LOOP = DegenerationRule(
    name="ngram_loop",
    find=find_ngram_loops,
    thresholds=(
        Parameter(name="words", default=48, low=10, meaning="over so many words in a row"),
        Parameter(
            name="share", default=0.9, low=0.1, high=1, meaning="such a part of their triples was just said"
        ),
        Parameter(name="within", default=28, low=3, meaning="just said: so many words ago at most"),
    ),
    meaning="a stretch in which nearly every three words in a row have just been said",
)
