"""Passages: the place of a trace to look at, where it is malformed or else its last statement before the verdict."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pv_judge.pages.blocks import Piece
from pv_judge.pages.excerpt import cut
from pv_rl.rewards.degeneration import find_anomalies
from pv_rl.verdict import end_of_trace, parse_verdict

__all__ = ["Passage", "excerpt", "find_passage"]

SEARCHED = 200_000
"""Characters at the end of a trace that are searched."""
LONGEST = 600
"""Characters of a statement that are marked."""
WHOLE = 6000
"""Characters of a text that is shown whole."""
ENDS, AROUND, MARKED = 1500, 500, 1000
"""Characters that are kept of a longer one: at each of its ends, on each side of the passage, of the passage."""
SENTENCE_END = re.compile(r"[.!?]\s+")


@dataclass(frozen=True, kw_only=True)
class Passage:
    """`trace[start:end]`."""

    start: int
    end: int
    why: str
    """`last statement`, or the name of the rule that found it."""


def find_passage(trace: str) -> Passage | None:
    """The first anomaly that the rules find, else the last statement; None for a trace without a word.

    Example: of "Step 1 holds. Step 2 divides by 0.\\n### False" it is "Step 2 divides by 0.".
    """
    skipped = max(0, len(trace) - SEARCHED)
    text = trace[skipped:]
    anomalies = find_anomalies(text)
    if anomalies:
        first = anomalies[0]
        return Passage(start=skipped + first.start, end=skipped + first.end, why=first.rule)
    end = end_of_trace(text)
    if parse_verdict(text) is not None:
        end = text.rfind("###", 0, end)
    while end > 0 and (text[end - 1].isspace() or text[end - 1] in "*_#"):
        end -= 1
    if end == 0:
        return None
    floor = max(text.rfind("\n", 0, end) + 1, end - LONGEST)
    start = floor
    for match in SENTENCE_END.finditer(text, floor, end):
        start = match.end()
    return Passage(start=skipped + start, end=skipped + end, why="last statement")


def excerpt(text: str, passage: Passage | None = None, whole: int = WHOLE) -> tuple[Piece, ...]:
    """A text with its passage marked; of a long text the beginning, the passage and the end.

    Args:
        text: of any length and content.
        passage: to mark and to keep.
        whole: longest text that is not cut.
    """
    start, end = (passage.start, min(passage.end, passage.start + MARKED)) if passage else (0, 0)
    kept = [(0, len(text))]
    if len(text) > whole:
        ends, around = ENDS * whole // WHOLE, AROUND * whole // WHOLE
        middle = [(start - around, end + around)] if passage else []
        kept = [(0, ends), *middle, (len(text) - ends, len(text))]
    return cut(text, kept, (start, end))
