"""Tolerance for ties of scores: 0.1 + 0.2 and 0.3 are the same score.

Two scores a and b are near if |a - b| <= 1e-9 max(1, min(|a|, |b|)). Nearness is made transitive: in sorted order, a
score that is near its neighbour is tied with it and with all that the neighbour is tied with. An infinite score is tied
with equal ones only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["TOLERANCE", "join_ties", "near"]

TOLERANCE = 1e-9
"""Relative above 1, absolute below. Sums of thousands of scores in another order differ by less."""


def near(one: float, other: float) -> bool:
    """Whether two scores, neighbours in sorted order, are tied."""
    return one == other or abs(one - other) <= TOLERANCE * max(1.0, min(abs(one), abs(other)))


def join_ties(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """(N,) scores, each replaced by the smallest of those that it is tied with. NaN stays."""
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    with np.errstate(invalid="ignore"):
        size = np.minimum(np.abs(ranked[1:]), np.abs(ranked[:-1]))
        apart = ~((ranked[1:] == ranked[:-1]) | (np.diff(ranked) <= TOLERANCE * np.maximum(1.0, size)))
    first = (
        np.maximum.accumulate(np.where(np.r_[True, apart], np.arange(len(ranked)), 0))
        if len(ranked)
        else order
    )
    joined = np.empty_like(ranked)
    joined[order] = ranked[first]
    return joined
