"""Ranges of the plan's estimates: how far measurements were from them."""

from __future__ import annotations

__all__ = ["FACTOR", "RANGES", "between"]

FACTOR = 2.0
"""How far off an estimate without a range may be, in either direction, without anything being wrong."""
RANGES: dict[str, tuple[float, float]] = {
    "old log-probs": (0.96, 1.3),
    "reference log-probs": (0.99, 1.37),
    "update": (0.86, 1.12),
    "the first step, longer by": (0.65, 1.12),
    "memory: update": (0.89, 1.17),
    "memory: Adam's step": (1.0, 1.34),
    "memory: log-probs": (0.93, 1.78),
}
"""Smallest and largest measured / predicted of what was measured on several shapes, all on one H200
(`benchmarks/plan_calibration.py --fit docs/studies/data/plan_calibration.csv`).

Memory is from what tensors take to what PyTorch reserves, which it gives back where memory is short."""


def between(name: str, amount: float, one_gpu: bool) -> tuple[float, float]:
    """Where the part is to be expected; a factor of two around the estimate where nothing like it was measured.

    Args:
        name: of a part, a key of `RANGES` or not.
        amount: the estimate.
        one_gpu: whether training has one GPU, as it had when the ranges were measured.
    """
    low, high = RANGES.get(name, (1 / FACTOR, FACTOR)) if one_gpu else (1 / FACTOR, FACTOR)
    return low * amount, high * amount
