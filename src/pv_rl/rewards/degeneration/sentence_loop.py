"""The same sentence again and again, back to back or in a cycle with others, with hardly anything new between."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.lines import without_code
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.spans import merged
from pv_rl.rewards.degeneration.words import WORD, lowered

__all__ = ["SENTENCE_LOOP"]

# The end of a sentence with what may open the next one without making it another: But, Now, Wait, a list mark.
BREAK = re.compile(
    r"[.!?\n。！？](?:(?<=[\n。！？])|[)\]\"'”’*_]*\s)\s*"
    r"(?:(?:but|and|so|now|then|well|okay|ok|also|again|actually|however|wait|hmm+|first|next)\b[\s,.…]*|[-*+•>#]+\s+)*"
)
FAR = 10  # times as far away
MARKS = " \t\r\n.!?。！？,;:…()[]\"'*_`“”‘’"


def find_sentence_loops(text: str, times: float, words: float, within: float, share: float) -> Iterator[Span]:
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


SENTENCE_LOOP = DegenerationRule(
    name="sentence_loop",
    find=find_sentence_loops,
    thresholds=(
        Parameter(name="times", default=4, low=2, meaning="the same sentence so often"),
        Parameter(
            name="words", default=4, low=1, meaning="words of two letters or more that it has at least"
        ),
        Parameter(name="within", default=12, low=1, meaning="sentences from one time to the next at most"),
        Parameter(
            name="share",
            default=0.8,
            low=0,
            high=1,
            meaning="from the second time on, such a part is not new",
        ),
    ),
    meaning="a sentence repeated, or a cycle of sentences, with hardly anything new between",
)
