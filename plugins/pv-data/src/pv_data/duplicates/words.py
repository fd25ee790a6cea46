"""Words of a problem for a comparison that rewording survives: stems, words that mean the same, words for numbers."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

__all__ = ["EMPTY", "digits", "of_words"]

STEM = 6
"""Letters of a word that count."""
EMPTY_WORDS = """
    a an the of in on at to for from with by and or that which who whose whom this these those such so as than then
    is are was were be been being it its he his him himself she her they them their i we us you one ones there let lets
    if when where while whenever what how many much suppose given give prove proved proven show shown determine find
    found compute calculate evaluate solve solved obtain obtained work every each all any some no not do does did has
    have had having can could may must will would should hold holds satisfy satisfies satisfied satisfying property both
    other another same only exactly most least more less into out up also now get problem question following proof claim
    call called denote denoted define defined assume assumed consider percent respectively true condition whole natural
    january february march april june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    的 了 是 在 其 中 个 这 那 把 被 求 证 明 设 已 知 若 则 且 为 有 请 给 出 问 试 所 都 使 得
    它 们 也 与 于 而 就 并 从 该 某 将
"""
EMPTY = frozenset(EMPTY_WORDS.split())
"""Words that do not tell one problem from another, in lower case."""
SAME_MEANING = """
    integer number numbers | divisor factor divides divided divisible multiple division | remainder remainders
    choose chosen choosing pick picked select selected take taken draw drawn | largest greatest maximum biggest highest
    smallest least minimum lowest | different distinct | root zero vanishes | probability likely chance | coprime prime
    kilometers kilometres km | meters metres | grams g | color colour | center centre | start begin depart leave leaves
    function functions mapping | sum add adds total | remove removed erase erased | consists contain contains
    commutative abelian | order ordering | buy bought buys purchase purchased | earn earns income salary
    素 质 | 倍 除 | 求 试 | 乘 积
"""
NUMBERS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
VALUES = {
    **{word: value for value, word in enumerate(NUMBERS.split())},
    **{word: 10 * value for value, word in enumerate(TENS.split(), start=2)},
    **{letter: value for value, letter in enumerate("零一二三四五六七八九")},
    **{"〇": 0, "两": 2, "half": 2, "twice": 2, "double": 2, "third": 3, "quarter": 4, "dozen": 12},
}
"""Words for numbers, and for the parts of a whole."""
SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "十": 10, "百": 100, "千": 1000, "万": 10**4}
MOST = 10**15
"""Larger numbers in words are not distinguished."""


def stem(word: str) -> str:
    """The first letters of a word, without a usual English ending."""
    word = word.casefold()
    for ending in ("ing", "ed", "es", "s", "ly", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:STEM]


SAME = {
    stem(word): stem(group.split()[0]) for group in re.split(r"\||\n", SAME_MEANING) for word in group.split()
}


def digits(text: str) -> str:
    """A number as it is compared: `2,400`, `2400` and `2400.0` are one."""
    whole, _, part = text.replace(",", "").partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "")


def of_words(run: Iterable[str], names: Container[str]) -> Iterator[tuple[str, str]]:
    """The features of words in a row (`pv_data.duplicates.blind` lists the kinds), and how the text spells each."""
    before = ""
    for word, is_number in _with_numbers(run):
        if is_number:
            if word not in ("0", "1"):
                yield "n" + word, word
            before = ""
        elif word.casefold() not in EMPTY:
            short = stem(word)
            short = SAME.get(short, short)
            yield ("p" if word in names else "w") + short, word
            if before:
                yield "p" + " ".join(sorted((before, short))), ""
            before = short


def _with_numbers(run: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Words, and where several of them name a number, the number: `twenty five`, `二百四十`. And whether it is one."""
    parts: list[int] = []
    for word in [*run, ""]:
        low = word.casefold()
        if low in SCALES and (parts or low == "十"):
            *others, last = parts or [1]
            if others and others[-1] < SCALES[low]:
                last += others.pop()  # five hundred and two thousand
            parts = [*others, min(last * SCALES[low], MOST)]
        elif low in VALUES and parts and parts[-1] % (10 if VALUES[low] < 10 else 100) == 0:
            parts.append(VALUES[low])
        elif low == "and" and parts and parts[-1] % 100 == 0:
            continue  # one hundred and twenty
        else:
            if parts:
                yield str(sum(parts)), True
            parts = [VALUES[low]] if low in VALUES else []
            if word and not parts:
                yield word, False
