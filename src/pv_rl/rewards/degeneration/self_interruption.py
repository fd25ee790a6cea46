"""Wait, no, hmm, let me see, actually, wait: a trace that keeps interrupting itself and says nothing in between."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pv_rl.hookspecs import Parameter
from pv_rl.rewards.degeneration.rule import DegenerationRule, Span
from pv_rl.rewards.degeneration.words import word_set

__all__ = ["SELF_INTERRUPTION"]

STEMS = ("wait", "hmm", "hold on", "actually", "let me", "let us see", "let's see")
MARKER = re.compile(r"\b(?:wait|hmm+|hold on|actually|let me|let us see|let's see)\b", re.IGNORECASE)
WORD = re.compile(r"\w+(?:['’]\w+)?")
FILLER = word_set(
    """a about again am an and at but careful check correct do double first go i i'll i'm if is isn't it it's just look
    maybe me minute moment more need no not now oh ok okay on once one or perhaps re recheck reconsider right rethink
    second see so sorry sure that that's the then think this to uh um verify well what yes"""
)
LONGEST_GAP = 60  # characters


def find_self_interruptions(text: str, times: float, crumbs: float) -> Iterator[Span]:
    low = text.lower()
    if sum(map(low.count, STEMS)) < times:
        return
    start, end, count = 0, -LONGEST_GAP - 1, 0
    for match in MARKER.finditer(text):
        if match.start() - end > LONGEST_GAP or _said(text[end : match.start()]) > crumbs:
            if count >= times:
                yield start, end
            start, count = match.start(), 0
        end, count = match.end(), count + 1
    if count >= times:
        yield start, end


def _said(gap: str) -> int:
    """Words with content in a piece of text."""
    return sum(word.lower() not in FILLER for word in WORD.findall(gap))


SELF_INTERRUPTION = DegenerationRule(
    name="self_interruption",
    find=find_self_interruptions,
    thresholds=(
        Parameter(name="times", default=10, low=2, meaning="interruptions in a row"),
        Parameter(name="crumbs", default=2, low=0, meaning="words with content between two of them at most"),
    ),
    meaning="wait, no, hmm, let me see: a chain of interruptions with nothing between them",
)
