"""Column paths: `answer`, `reward_model.ground_truth`, `prompt[0].content`, `messages[user]`, `attempts[].solution`.

`[0]` is an item of a list, from the end if negative; `[user]` the only message of that role in a chat; `[]` each item:
the row has one proof for each of them. `answer?` may be missing in a row. A column whose whole name is the path comes
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from pv_data.sources.reading.chat import only_message
from pv_data.sources.reading.unusable import Unusable

__all__ = ["EACH", "Each", "Path", "is_path", "value_at"]

STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?[0-9]{1,6})\]|\[([A-Za-z_]+)\]|(\[\])")
EACH = "[]"


@dataclass(frozen=True)
class Key:
    name: str


@dataclass(frozen=True)
class Role:
    name: str


Step: TypeAlias = "Key | Role | int | None"
"""None: each item."""
Path: TypeAlias = tuple[Step, ...]


class Each(list[Any]):
    """The values of a path with `[]`, one for each item: a value, or the `Unusable` that says why there is none."""


@cache
def is_path(text: str) -> Path | None:
    """The steps of a path; None for a text that is not one, and can only be the name of a column."""
    steps, at = list[Step](), 0
    while at < len(text):
        found = STEP.match(text, at)
        if found is None or (at == 0 and text[0] in ".["):
            return None
        name, index, role, _ = found.groups()
        if name is not None and at and text[at] != ".":
            return None
        steps.append(
            Key(name) if name is not None else int(index) if index else Role(role.lower()) if role else None
        )
        at = found.end()
    return tuple(steps) if steps and steps.count(None) < 2 else None


def value_at(values: Mapping[str, Any], text: str) -> Any:
    """What a row has there; an `Each` for a path with `[]`, None where a value on the way is null.

    Raises:
        Unusable: it is not there, or a value on the way is no object or list.
    """
    if text in values:
        return values[text]
    if text.endswith("?"):
        try:
            return value_at(values, text[:-1])
        except Unusable as error:
            if error.reason.startswith("missing: "):
                return None
            raise
    path = is_path(text)
    if path is None:
        raise _missing(text, values)
    return _follow(values, path, text)


def _follow(value: Any, path: Path, text: str) -> Any:
    for number, step in enumerate(path):
        if value is None:
            return None
        if isinstance(step, Key):
            if not isinstance(value, Mapping) or step.name not in value:
                raise _missing(text, value, step.name if number else "")
            value = value[step.name]
        elif not isinstance(value, list):
            raise Unusable(f"not a list: {text}", f"it is a {type(value).__name__} there")
        elif isinstance(step, Role):
            value = only_message(value, step.name, text)
        elif step is None:
            return Each(_item(item, path[number + 1 :], text) for item in value)
        else:
            if not -len(value) <= step < len(value):
                raise Unusable(f"missing: {text}", f"the list has {len(value)} items")
            value = value[step]
    return value


def _item(item: Any, path: Path, text: str) -> Any:
    """An item that lacks the value costs only the proof that it is of."""
    try:
        return _follow(item, path, text)
    except Unusable as error:
        return error


def _missing(text: str, value: Any, name: str = "") -> Unusable:
    there = (
        ", ".join(map(str, list(value)[:30])) if isinstance(value, Mapping) else f"a {type(value).__name__}"
    )
    place = f"where {name!r} is looked for, there is {there}" if name else f"the row has {there}"
    return Unusable(f"missing: {text[:100]}", f"{place}; correct --column, or in a config options.columns")
