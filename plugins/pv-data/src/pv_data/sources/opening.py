"""Source opener: checks a source's options before a file is opened, and the names in its rows."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaError

from pv_data.hookspecs import Read
from pv_data.plugins import SOURCES
from pv_data.records import Problem, Proof, is_name
from pv_judge.config_errors import problems
from pv_rl.errors import ConfigError, PluginError
from pv_rl.plugins import nearest

__all__ = ["check_options", "open_source"]


def open_source(kind: str, path: Path, options: Mapping[str, Any] | None = None) -> Read:
    """What a source gives.

    Raises:
        ConfigError: there is no such source, or an option that it does not take; before anything is read.
        DataError: while it is read: the file is none of this source.
        PluginError: likewise: it gives a name that no slice can have.
    """
    read = SOURCES.named(kind).read
    typed = check_options(kind, read, options or {})
    return _checked(kind, read(path, **typed))


def _checked(kind: str, rows: Read) -> Read:
    fine = set[str]()
    for row in rows:
        given = {}
        if isinstance(row, Problem | Proof):
            given["source"] = row.source
        if isinstance(row, Proof):
            given["method"] = row.method
        for what, name in given.items():
            if name in fine:
                continue
            if not is_name(name):
                raise PluginError(
                    f"the source {kind} gives {name!r} as the name of a {what}; it is a part of a slice, "
                    "source/method/model, and has one character or more, but no /, [ or ]: rename it in the source"
                )
            fine.add(name)
        yield row


STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


def check_options(kind: str, read: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what a source does not take. A parameter without a type takes anything.

    Returns the options by their types: a text where the source has a `Path`, a list where it has a tuple or a set, as
    YAML has neither.

    Args:
        kind: the source's name in a config.
        read: its function; the first parameter is the path, and no option.
        options: as the config gives them.

    Raises:
        ConfigError: an option that it does not know or that has another type, or one that it needs and that is missing.
    """
    path, known = _split(read)
    named = {
        name: one
        for name, one in known.items()
        if one.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    }
    free = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values())
    allowed = ", ".join(named) or "none"
    if strange := [name for name in options if name == path or (not free and name not in named)]:
        raise ConfigError(
            f"the source {kind} has no option {', '.join(map(repr, strange))}.{nearest(str(strange[0]), named)} "
            f"It has {allowed}"
        )
    if missing := [
        n for n, one in named.items() if one.default is inspect.Parameter.empty and n not in options
    ]:
        raise ConfigError(f"the source {kind} needs the option {', '.join(missing)}; put it under options")
    hints, typed, wrong = _hints(read), dict(options), list[str]()
    for name in options:
        if name in hints:
            try:
                typed[name] = _typed(options[name], hints[name])
            except ValidationError as error:
                wrong.append(_wrong(name, options[name], error))
    if wrong:
        raise ConfigError(f"the source {kind}: {'; '.join(wrong)}. Its options are {allowed}")
    return typed


def _split(read: Callable[..., Any]) -> tuple[str, dict[str, inspect.Parameter]]:
    """The name of the first parameter, and the others."""
    parameters = inspect.signature(read).parameters
    names = list(parameters)
    return "".join(names[:1]), {name: parameters[name] for name in names[1:]}


def _hints(read: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(read, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}  # a type that its module has for type checkers only


def _typed(value: Any, hint: Any) -> Any:
    """A value by its type, as strict as for JSON: a number is no text, but a text can be a path."""
    try:
        adapter = TypeAdapter(hint, config=STRICT)
    except (PydanticUserError, SchemaError):
        return value  # no type that values can be checked against, or one with a config of its own
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):  # from Python, and not from YAML
        return adapter.validate_python(value)
    if isinstance(value, dict) and len(json.loads(text)) < len(value):
        raise ConfigError(f"{value!r:.200} has two keys that are one as text, as 1 and '1' are; take one out")
    return adapter.validate_json(text)


def _wrong(name: str, value: Any, error: ValidationError) -> str:
    return f"{name}={value!r:.200}: {', or '.join(problems(error))}"
