"""A share with its exact interval."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CONFIDENCE", "Ratio", "ratio"]

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A share, and its exact interval; None where there is nothing to share, no interval where none is right."""

    hits: int
    number: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


def ratio(hits: int, number: int, interval: bool = True) -> Ratio:
    """`hits` of `number`, by Clopper and Pearson where `interval`."""
    from pv_data.audit.bounds import interval as exact

    if not number or not interval:
        return Ratio(hits=hits, number=number, value=hits / number if number else None)
    low, high = exact(hits, number, CONFIDENCE)
    return Ratio(hits=hits, number=number, value=hits / number, low=low, high=high)
