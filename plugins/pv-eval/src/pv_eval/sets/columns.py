"""Which column of a file is what, and how its cells are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pv_data.records import content_id
from pv_rl.errors import ConfigError, DataError
from pv_rl.rewards.base import read_label

__all__ = ["chosen", "label_of", "number_of", "question_id", "text_of"]

WORDS = {"correct": True, "right": True, "incorrect": False, "wrong": False}


def chosen(
    row: Mapping[str, Any],
    names: Mapping[str, Sequence[str]],
    given: Mapping[str, str],
    needed: Sequence[str],
) -> dict[str, str]:
    """The column of each meaning, decided by the first row.

    Args:
        names: by meaning, the columns that are looked for, the likeliest first.
        given: by meaning, the column that the user names.
        needed: meanings that have to be there.

    Raises:
        ConfigError: the user names a meaning that there is not.
        DataError: a column is not there.
    """
    if strange := given.keys() - names.keys():
        raise ConfigError(f"columns has {', '.join(sorted(strange))}; there are {', '.join(names)}")
    found: dict[str, str] = {}
    for meaning, usual in names.items():
        looked_for = [given[meaning]] if meaning in given else list(usual)
        column = next((name for name in looked_for if name in row), None)
        if column is not None:
            found[meaning] = column
        elif meaning in given or meaning in needed:
            raise DataError(
                f"there is no column {' or '.join(looked_for)} for the {meaning}; there are "
                f"{', '.join(map(str, row))[:300]}. Name it with --set-option columns.{meaning}=COLUMN"
            )
    return found


def text_of(value: object) -> str | None:
    """A text, also one given as a list of steps; None for anything else. Halves of surrogate pairs are replaced."""
    if isinstance(value, list) and value and all(isinstance(step, str) for step in value):
        value = "\n".join(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def label_of(value: object) -> bool | None:
    """A bool, 0 or 1, or true, false, correct, incorrect, right, wrong in any case; None for anything else."""
    if isinstance(value, str) and value.strip().lower() in WORDS:
        return WORDS[value.strip().lower()]
    try:
        return read_label(value)
    except DataError:
        return None


def number_of(value: object) -> float | None:
    """A finite number, also one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def question_id(problem: str) -> str:
    """The id of a question that has none: of its text, white space aside."""
    return content_id("question", " ".join(problem.split()))
