"""Rules for the place of the verdict: nothing before it, or more text after it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from pv_rl.hookspecs import Span
from pv_rl.verdict import BOLD, INVISIBLE, VERDICT, parse_verdict
from pv_rules.rule import rule
from pv_rules.text import end_of_trace, word_set

__all__ = ["empty_justification", "text_after_verdict"]

WORD = re.compile(r"\w+")
LABELS = word_set(
    """answer assistant conclusion evaluation false final hence is judgement judgment my output overall response result
    so the therefore think thus true verdict"""
)
LONGEST_LABEL = 60  # characters before a verdict on its line
MOST_READ = 10_000  # verdicts, or words in a row that are labels, that are looked at
REST_OF_LINE = re.compile(rf"[{BOLD}{INVISIBLE} \t\xa0]*(?:[\r\n]|\Z)")
GOES_ON = re.compile(rf"[{BOLD}]*[.,;:—–-]+[ \t]*(?=\w)")


@rule(
    "a verdict with nothing before it",
    words=(1, 1, "words that a verdict needs before it, without labels"),
)
def empty_justification(text: str, words: float) -> Iterator[Span]:
    if parse_verdict(text) is None:
        return
    end = end_of_trace(text)
    line = max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
    verdict = next(VERDICT.finditer(text, line, end))
    if len(list(islice(_words(text, 0, verdict.start()), int(words)))) < words:
        yield verdict.start(), end


@rule(
    "a verdict on a line of its own, outside the thoughts, after which the text goes on",
    words=(1, 1, "words behind the verdict"),
)
def text_after_verdict(text: str, words: float) -> Iterator[Span]:
    start = text.rfind("</think>") + 1
    if text.find("<think>", start) >= 0:
        return
    end = end_of_trace(text)
    for verdict in islice(VERDICT.finditer(text, start, end), MOST_READ):
        stop = _end_of_verdict_line(text, verdict.start(), verdict.end(), end)
        if stop is None:
            continue
        rest = list(islice(_words(text, stop, end), int(words)))
        if len(rest) >= words:
            yield rest[0].start(), end
        return


def _end_of_verdict_line(text: str, start: int, stop: int, end: int) -> int | None:
    """Where a verdict ends that has its line for itself or is followed by punctuation; None for any other."""
    ending = REST_OF_LINE.match(text, stop, end) or GOES_ON.match(text, stop, end)
    if ending is None:
        return None
    line = max(text.rfind(mark, max(0, start - LONGEST_LABEL), start) for mark in "\r\n") + 1
    before = text[max(line, start - LONGEST_LABEL) : start]
    return None if ">" in before or any(_words(before, 0, len(before))) else ending.end()


def _words(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Words that say something, among the first `MOST_READ`."""
    return (
        word for word in islice(WORD.finditer(text, start, end), MOST_READ) if word[0].lower() not in LABELS
    )
