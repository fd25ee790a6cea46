"""Rows of a metrics file: the step and the numbers of a record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pv_rl.metric_names import PREFIX
from pv_runs.metrics_log import LARGEST

__all__ = ["MOST_NAMES", "Row", "finite", "flatten", "is_step", "to_row"]

Row: TypeAlias = "tuple[int | None, dict[str, float]]"
"""Step, or None where a row has none, and the numbers by name; NaN for one that is not finite."""

STEP_NAMES = ("step", "_step", "global_step", "trainer/global_step", "train/global_step", "iteration")
"""Names of the column with the step, the preferred one first; upper and lower case are the same."""
LARGEST_STEP = 10**12
MOST_NAMES = 2000
"""Numbers of a row; further ones are left out, last the step and our own."""
DEEPEST = 4
LONGEST_NUMBER = 32
"""Characters."""


def is_step(name: str) -> bool:
    """Whether a column has the step."""
    return name.lower() in STEP_NAMES


def to_row(record: Mapping[str, Any]) -> Row:
    """Nested objects become `a/b`; what is no number is left out."""
    numbers: dict[str, float] = {}
    leaves = [
        (leaf, inner)
        for name, value in record.items()
        for leaf, inner in (flatten(value, name, 1) if isinstance(value, dict) else ((name, value),))
    ]
    if len(leaves) > MOST_NAMES:
        # verl's validation has ten numbers for each data source and number of the reward
        leaves.sort(key=lambda leaf: not (is_step(leaf[0]) or leaf[0].startswith(PREFIX)))
    for leaf, inner in leaves:
        if len(numbers) < MOST_NAMES and (number := finite(inner)) is not None:
            numbers[leaf] = number
    name = next((one for one in STEP_NAMES if one in numbers), None)
    name = name or next((one for one in numbers if is_step(one)), None)
    if name is None:
        return None, numbers
    step = numbers.pop(name)
    whole = math.isfinite(step) and 0 <= step <= LARGEST_STEP
    return (int(step) if whole else None), numbers


def flatten(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The leaves of nested objects, their names joined by a slash."""
    if not isinstance(value, dict):
        yield name, value
    elif depth <= DEEPEST:
        for key, inner in value.items():
            yield from flatten(inner, f"{name}/{key}" if name else str(key), depth + 1)


def finite(value: Any) -> float | None:
    """A number, also one that is written as text; NaN for one that is not finite; None for anything else."""
    if isinstance(value, str) and len(value) <= LONGEST_NUMBER:
        try:  # wandb writes "NaN" and "Infinity", and newer versions of transformers round to text
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) and abs(value) <= LARGEST else math.nan
    except OverflowError:
        return math.nan
