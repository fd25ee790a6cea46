"""Rules for phrases and sentences that come back again and again, with hardly anything new between."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice
from operator import sub

from pv_rl.hookspecs import Span
from pv_rules.rule import rule
from pv_rules.text import WORD, lowered, merged, without_code

__all__ = ["ngram_loop", "sentence_loop"]

SET = re.compile(b"\\x01+")
TOKEN = re.compile(r"\S+")
PUNCTUATION = ".,;:!?()[]\"'*_`“”‘’#"
WORDY = 0.4  # such a part of a stretch is words of two letters or more: matrices and tables are none


@rule(
    "a stretch in which nearly every three words in a row occurred shortly before",
    words=(48, 10, "length of the stretch, in words"),
    share=(0.9, 0.1, 1, "share of its triples that occurred shortly before"),
    within=(28, 3, "words back that count as shortly before, at most"),
)
def ngram_loop(text: str, words: float, share: float, within: float) -> Iterator[Span]:
    """One new word in a round makes three new triples. So with the defaults (27 old triples of 30 are needed, and old
    means 28 words ago at most) no list is a loop whose every entry has a word or number of its own: "Step 7 is wrong
    because step 6 is wrong" may follow the same sentence about step 6.
    """
    said = [word for token in text.lower().split() if (word := token.strip(PUNCTUATION))]
    if len(said) - 2 - len(set(_triples(said))) < share * words:
        return  # triples that occurred before, anywhere
    old = _in_stretches(_just_said(said, within), int(words))
    if max(old, default=0) < share * words:
        return
    if (prose := without_code(text)) != text:
        yield from ngram_loop.find(prose, words, share, within)
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


# The end of a sentence with what may open the next one without making it another: But, Now, Wait, a list mark.
BREAK = re.compile(
    r"[.!?\n。！？](?:(?<=[\n。！？])|[)\]\"'”’*_]*\s)\s*"
    r"(?:(?:but|and|so|now|then|well|okay|ok|also|again|actually|however|wait|hmm+|first|next)\b[\s,.…]*|[-*+•>#]+\s+)*"
)
FAR = 10  # times as far away
MARKS = " \t\r\n.!?。！？,;:…()[]\"'*_`“”‘’"


@rule(
    "a sentence repeated, or a cycle of sentences, with hardly anything new between",
    times=(4, 2, "occurrences of the same sentence"),
    words=(4, 1, "least number of its words of two letters or more"),
    within=(12, 1, "sentences from one occurrence to the next, at most"),
    share=(0.8, 0, 1, "share of the text that is not new, from the second occurrence on"),
)
def sentence_loop(text: str, times: float, words: float, within: float, share: float) -> Iterator[Span]:
    answer = text.rfind("</think>") + 1  # it may repeat what the thoughts check
    for start, part in ((0, text[:answer]), (answer, text[answer:])):
        for one, other in _in_part(part, times, words, within, share):
            yield start + one, start + other


def _in_part(text: str, times: float, words: float, within: float, share: float) -> Iterator[Span]:
    low = lowered(text)
    sentences = [one.strip(MARKS) for one in BREAK.split(low)]
    counts = Counter(sentences)
    often = {one for one, count in counts.items() if count >= times and len(WORD.findall(one)) >= words}
    if not often:
        return
    if (prose := without_code(text)) != text:
        yield from _in_part(prose, times, words, within, share)
        return
    places = [0, *(match.end() for match in BREAK.finditer(low))]
    kept = [(place, one) for place, one in zip(places, sentences, strict=True) if one]
    again = _said_again(kept, counts, max(times - 1, 2), within)
    yield from merged(sorted(_loops(kept, often, again, int(times), within, share)))


def _said_again(
    sentences: Sequence[tuple[int, str]], counts: Mapping[str, int], times: float, within: float
) -> list[bool]:
    """Of each sentence: whether it was said shortly before. One that is quoted once, a step and its check, is not;
    from the fourth time on a sentence may come from further away, since loops may have long rounds."""
    last: dict[str, int] = {}
    said: Counter[str] = Counter()
    again = []
    for number, (_, sentence) in enumerate(sentences):
        near = within if said[sentence] < times else FAR * within
        again.append(counts[sentence] >= times and number - last.get(sentence, number - near - 1) <= near)
        last[sentence] = number
        said[sentence] += 1
    return again


def _loops(
    sentences: Sequence[tuple[int, str]],
    often: set[str],
    again: Sequence[bool],
    times: int,
    within: float,
    share: float,
) -> Iterator[Span]:
    where: dict[str, list[int]] = defaultdict(list)
    for number, (_, sentence) in enumerate(sentences):
        if sentence in often:
            where[sentence].append(number)
    old = list(accumulate(again, initial=0))
    for numbers in where.values():
        for first, second, last in zip(numbers, numbers[1:], numbers[times - 1 :], strict=False):
            if last - first <= times * FAR * within and old[last + 1] - old[second] >= share * (
                last + 1 - second
            ):
                start, sentence = sentences[last]
                yield sentences[first][0], start + len(sentence)
