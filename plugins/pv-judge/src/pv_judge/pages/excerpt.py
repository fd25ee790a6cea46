"""Excerpts: a long text cut to the parts to show, with a mark and with notes of what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from pv_judge.pages.blocks import Piece

__all__ = ["cut"]


def cut(text: str, kept: Sequence[tuple[int, int]], mark: tuple[int, int] = (0, 0)) -> tuple[Piece, ...]:
    """The pieces of a text, in order.

    Example: `cut("It holds. so so so", [(3, 18)], (10, 18))` is
    `("[... 3 characters left out ...]", "gap"), ("holds. ", "text"), ("so so so", "mark")`.

    Args:
        text: of any length.
        kept: start and end, in characters, of the parts to show; sorted by start, and they may overlap.
        mark: start and end of what is marked; equal for nothing.
    """
    start, end = mark
    pieces: list[Piece] = []
    place = 0
    for low, high in [*kept, (len(text), len(text))]:
        low, high = max(0, low, place), min(high, len(text))
        if low > place:
            pieces.append((f"[... {low - place:,} characters left out ...]", "gap"))
        parts: list[Piece] = [
            (text[low : min(high, start)], "text"),
            (text[max(low, start) : min(high, end)], "mark"),
            (text[max(low, end) : high], "text"),
        ]
        pieces += [part for part in parts if part[0]]
        place = max(low, high)
    return tuple(pieces)
