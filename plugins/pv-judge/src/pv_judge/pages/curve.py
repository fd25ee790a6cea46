"""Sparklines: a series as a line of blocks on a terminal, or as the points of an SVG line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pv_judge.pages.blocks import Curve

__all__ = ["BLOCKS", "HEIGHT", "PLAIN", "WIDTH", "condense", "heights", "marks", "polylines", "sparkline"]

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.,-~=*#"
"""For a terminal whose encoding has no blocks."""
WIDTH, HEIGHT = 220, 26
"""Of an SVG line, in its own units; it has at most WIDTH points."""


def condense(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values, each the mean of neighbours; NaN where none of them is a number.

    Example: 1, 3, NaN, 5 in two are 2 and 5.
    """
    count = len(values)
    if count <= width:
        return list(values)
    edges = [count * place // width for place in range(width + 1)]
    parts = [
        [value for value in values[start:end] if math.isfinite(value)]
        for start, end in itertools.pairwise(edges)
    ]
    return [sum(value / len(part) for value in part) if part else math.nan for part in parts]


def heights(points: Sequence[float]) -> list[float]:
    """Where each value is between the least, 0, and the greatest, 1; NaN where there is none.

    Example: 1, 2, 5 are 0, 0.25, 1. What does not change, but for rounding, is in the middle, 0.5.
    """
    finite = [value for value in points if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    reach = high / 2 - low / 2  # halves, since the difference of two finite numbers may be infinite
    flat = reach <= 1e-9 * max(abs(low), abs(high))
    return [
        math.nan if not math.isfinite(value) else 0.5 if flat else (value / 2 - low / 2) / reach
        for value in points
    ]


def sparkline(values: Sequence[float], width: int, blocks: str = BLOCKS) -> str:
    """From the series' least value, the first block, to its greatest, the last one; a gap where there is none.

    Example: 0, 1, 2, 3, 4, 5, 6, 7 is `▁▂▃▄▅▆▇█`. What does not change is `▅▅▅`.
    """
    places = heights(condense(values, width))
    return "".join(
        blocks[round(place * (len(blocks) - 1))] if math.isfinite(place) else " " for place in places
    ).rstrip()


def polylines(curve: Curve) -> list[str]:
    """The `points` of SVG polylines: steps from 0 to `curve.last` over WIDTH; a line ends where there is no number."""
    lines: list[list[str]] = [[]]
    steps, values = condense(curve.steps, WIDTH), condense(curve.values, WIDTH)
    for step, height in zip(steps, heights(values), strict=True):
        if math.isfinite(height):
            x = _x(curve, step)
            lines[-1].append(f"{x:.1f},{HEIGHT - 3 - (HEIGHT - 6) * height:.1f}")
        else:
            lines.append([])
    return [" ".join(line if len(line) > 1 else line * 2) for line in lines if line]


def marks(curve: Curve) -> list[tuple[str, str]]:
    """Kind and SVG path of each kind of marked steps: validations are ticks at the lower edge, others vertical lines.

    Marks at the same place count once, so that there are at most WIDTH of a kind.
    """
    found = []
    for kind, steps in curve.marks.items():
        top = HEIGHT - 4 if kind == "validation" else 0
        places = sorted({round(_x(curve, step)) for step in steps if 0 <= step <= curve.last})
        if places:
            found.append((kind, "".join(f"M{x} {top}V{HEIGHT}" for x in places)))
    return found


def _x(curve: Curve, step: float) -> float:
    return WIDTH * min(1.0, step / max(1.0, curve.last))
