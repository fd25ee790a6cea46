"""Values of a plain file: texts, labels, numbers and lists, each read strictly or not at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pv_data.sources.reading.label_map import WORDS
from pv_judge.files import load_json
from pv_rl.errors import DataError
from pv_rl.rewards.base import read_label

__all__ = ["LABELS", "id_of", "is_missing", "label_of", "list_of", "number_of", "text_of"]

LABELS = "true or false (also 1/0, yes/no, correct/incorrect, right/wrong), or empty for none"
"""What labels and verdicts may be, in words."""
MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "missing"})
"""Words for no value, as tools write them."""


def text_of(value: object) -> str | None:
    """A text, also one given as a list of steps; None for anything else. Halves of surrogate pairs are replaced."""
    if isinstance(value, list) and value and all(isinstance(step, str) for step in value):
        value = "\n".join(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def id_of(value: object) -> str:
    """A text or a number that names something; empty for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return (text_of(value) or "").strip()


def label_of(value: object) -> bool | None:
    """A bool, 0 or 1, or a word of `LABELS` in any case; None for anything else."""
    if isinstance(value, str) and value.strip().casefold() in WORDS:
        return WORDS[value.strip().casefold()]
    try:
        return read_label(value)
    except DataError:
        return None


def is_missing(value: object) -> bool:
    """Whether a value is null, NaN, blank, or a word for none."""
    if isinstance(value, str):
        return value.strip().casefold() in MISSING
    return value is None or (isinstance(value, float | Decimal) and value != value)


def number_of(value: object) -> float | None:
    """A finite number, also a decimal or one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def list_of(value: object, kind: type = object) -> list[Any] | None:
    """A list whose items are all of a kind, also one written as JSON text; None for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = load_json(value)
        except ValueError:
            return None
    kinds = (Mapping,) if kind is dict else (kind,)
    return value if isinstance(value, list) and all(isinstance(one, kinds) for one in value) else None
