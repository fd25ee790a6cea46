"""A trace cut to what fits on a page: beginning, passage and end, with notes of how much is left out between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pv_eval.report.passage import Passage
from pv_eval.report.text import visible

__all__ = ["Piece", "excerpt"]

WHOLE = 6000
"""Characters of a text that is shown whole."""
HEAD, TAIL, AROUND, MARKED = 1500, 1500, 500, 1000
"""Characters that are kept of a longer one: at its ends, on each side of the passage, of the passage."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    text: str
    """Printable."""
    kind: Literal["text", "mark", "gap"]


def excerpt(text: str, passage: Passage | None = None, whole: int = WHOLE) -> tuple[Piece, ...]:
    """The pieces, in order.

    Args:
        text: of any length and content.
        passage: to mark and to keep.
        whole: longest text that is not cut.
    """
    number = len(text)
    start, end = (passage.start, min(passage.end, passage.start + MARKED)) if passage else (0, 0)
    kept = [(0, number)]
    if number > whole:
        share = whole / WHOLE
        head, tail, around = int(HEAD * share), int(TAIL * share), int(AROUND * share)
        middle = [(max(0, start - around), min(number, end + around))] if passage else []
        kept = [(0, head), *middle, (number - tail, number)]
    pieces: list[Piece] = []
    place = 0
    for low, high in kept:
        if low > place:
            pieces.append(Piece(text=f"[... {low - place:,} characters left out ...]", kind="gap"))
        low = max(low, place)
        parts = [
            Piece(text=visible(text[low : min(high, start)]), kind="text"),
            Piece(text=visible(text[max(low, start) : min(high, end)]), kind="mark"),
            Piece(text=visible(text[max(low, end) : high]), kind="text"),
        ]
        pieces += [piece for piece in parts if piece.text]
        place = max(place, high)
    return tuple(pieces)
