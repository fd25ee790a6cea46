"""Validation messages: what pydantic found wrong with settings, in our words."""

from __future__ import annotations

from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from pv_rl.plugins import nearest

__all__ = ["explain", "problems"]

EXPECTED = {
    "bool": "true or false",
    "dataclass": "settings by name",
    "dict": "settings by name",
    "finite": "a finite number",
    "float": "a number",
    "frozen": "a list",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "int": "a whole number",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
    "list": "a list",
    "literal_error": "{expected}",
    "mapping": "settings by name",
    "set": "a list",
    "string": "text",
    "string_too_short": "a text that is not empty",
    "string_pattern_mismatch": "text of the form {pattern}",
    "too_long": "a list of at most {max_length}",
    "too_short": "a list of at least {min_length}",
    "tuple": "a list",
}
"""What is expected, by the type of pydantic's error, or by the first word of it."""
UNKNOWN, MISSING = "unexpected_keyword_argument", "missing"
NAMES = (UNKNOWN, MISSING, "dataclass_type")
"""Errors about the names of settings."""


def explain(error: ValidationError, kind: Any, name: str) -> str:
    """What is wrong with settings of the class `kind`, then the settings that exist at those places.

    Args:
        error: pydantic's.
        kind: the dataclass that was built.
        name: of the settings in the config, for example `judge`; it comes before each setting. "" for none.
    """
    found: dict[str, str] = {}
    allowed: dict[str, str] = {}
    for place, one in _innermost(error):
        path, holder = _holder(kind, (*place, "") if one["type"] == "dataclass_type" else place)
        names = holder.__dataclass_fields__
        if one["type"] in NAMES:
            where = ".".join(filter(None, (name, *path)))
            allowed[f"Settings of {where}" if where else "Settings"] = ", ".join(names)
        found[".".join(filter(None, (name, *map(str, place))))] = _problem(one, names)
    text = "; ".join(f"{place}: {said}" if place else said for place, said in found.items())
    return "".join((text, *(f". {where}: {names}" for where, names in allowed.items()))).replace("?.", "?")


def problems(error: ValidationError) -> list[str]:
    """What is wrong with one value, each thing once."""
    return list(dict.fromkeys(_problem(one, ()) for _, one in _innermost(error)))


def _innermost(error: ValidationError) -> list[tuple[tuple[int | str, ...], Any]]:
    """Place and description of each error; not those of a whole, such as a list too short, of which a part is wrong."""
    found = error.errors(include_url=False)
    places = [one["loc"] for one in found]
    return [
        (place, one)
        for place, one in zip(places, found, strict=True)
        if not any(len(other) > len(place) and other[: len(place)] == place for other in places)
    ]


def _problem(one: Any, names: Any) -> str:
    kind, value = one["type"], one["input"]
    if kind == UNKNOWN:
        like = nearest(str(one["loc"][-1]), names)
        return f"there is no such setting{like and '.'}{like}"
    if kind == MISSING:
        return "it is required, and not set"
    if kind == "value_error":
        return one["msg"].removeprefix("Value error, ")
    expected = EXPECTED.get(kind) or EXPECTED.get(kind.partition("_")[0])
    if expected is None:
        return one["msg"].replace("Input should be", "expected")
    text = f"expected {expected.format(**one.get('ctx', {}))}"
    if isinstance(value, bool | int | float | None):  # not a text, which may be a key
        text += f" (given: {value!r})"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return f"{text}; put it in quotes"
    return f"{text}; put it in [ ]" if expected == "a list" and value is not None else text


def _holder(kind: Any, place: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """The innermost settings that contain a place, and their path."""
    found: tuple[list[str], Any] = ([], kind)
    hint: Any = kind
    for number, part in enumerate(place):
        if is_dataclass(hint):
            hint = get_type_hints(hint).get(str(part))
        else:  # of a mapping its values, of a list its elements
            inner = [one for one in get_args(hint) if one not in (str, int, ...)]
            hint = inner[0] if inner else None
        while get_origin(hint) in (Union, UnionType):
            hint = next((one for one in get_args(hint) if one is not type(None)), None)
        if hint is None:
            break
        if is_dataclass(hint) and number + 1 < len(place):
            found = ([str(one) for one in place[: number + 1]], hint)
    return found
