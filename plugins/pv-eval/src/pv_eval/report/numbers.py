"""Numbers as a report shows them."""

from __future__ import annotations

import math
from collections.abc import Callable

from pv_eval.intervals import Estimate as Mine
from pv_judge.agreement import Estimate as Theirs

__all__ = ["NOTHING", "amount", "coefficient", "p_value", "percent", "points"]

NOTHING = "-"


def percent(estimate: Mine | Theirs) -> str:
    """`68.7 (65.8 to 71.2)`, in percent."""
    return _show(estimate, lambda value: f"{100 * value + 0.0:.1f}")


def points(estimate: Mine | Theirs) -> str:
    """A difference in percentage points, with its sign."""
    return _show(estimate, lambda value: f"{100 * value + 0.0:+.1f}")


def coefficient(estimate: Mine | Theirs) -> str:
    """Three decimals."""
    return _show(estimate, lambda value: f"{value + 0.0:.3f}")


def amount(estimate: Mine | Theirs) -> str:
    """Whole numbers."""
    return _show(estimate, lambda value: f"{value:,.0f}")


def p_value(p: float) -> str:
    """`< 0.001`, or three decimals."""
    if math.isnan(p):
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _show(estimate: Mine | Theirs, one: Callable[[float], str]) -> str:
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None or math.isnan(value):
        return NOTHING
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return one(value)
    return f"{one(value)} ({one(low)} to {one(high)})"
