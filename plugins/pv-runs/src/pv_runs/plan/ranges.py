"""Ranges of the plan's estimates: how far measurements were from them."""

from __future__ import annotations

__all__ = ["FACTOR", "RANGES", "between"]

FACTOR = 2.0
"""How far off an estimate without a range may be, in either direction, without anything being wrong."""
RANGES: dict[str, tuple[float, float]] = {}
"""Smallest and largest measured / predicted by the name of a part (`update`, `decoding`, `a step`, `memory`), of
`benchmarks/plan_calibration.py --fit`. A part that is not here was not measured."""


def between(name: str, amount: float) -> tuple[float, float]:
    """Where the part is to be expected."""
    low, high = RANGES.get(name, (1 / FACTOR, FACTOR))
    return low * amount, high * amount
