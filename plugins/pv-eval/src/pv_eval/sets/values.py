"""Values of a plain file: texts, labels, numbers and lists, each read strictly or not at all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pv_judge.files import load_json
from pv_rl.errors import DataError
from pv_rl.rewards.base import read_label

__all__ = ["id_of", "label_of", "list_of", "number_of", "text_of"]

WORDS = {"correct": True, "right": True, "incorrect": False, "wrong": False}


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
    """A bool, 0 or 1, or true, false, correct, incorrect, right, wrong in any case; None for anything else."""
    if isinstance(value, str) and value.strip().lower() in WORDS:
        return WORDS[value.strip().lower()]
    try:
        return read_label(value)
    except DataError:
        return None


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
