"""The options of a source, checked against its signature before a file is opened."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest

__all__ = ["check_options"]

STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


def check_options(kind: str, read: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse what a source does not take. A parameter without a type takes anything.

    Args:
        kind: the source's name in a config.
        read: its function; the first parameter is the path, and no option.
        options: as the config gives them.

    Raises:
        ConfigError: an option that it does not know or that has another type, or one that it needs and that is missing.
    """
    known = dict(list(inspect.signature(read).parameters.items())[1:])
    named = {
        name: one
        for name, one in known.items()
        if one.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    }
    free = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values())
    allowed = ", ".join(named) or "none"
    if strange := [] if free else [name for name in options if name not in named]:
        raise ConfigError(
            f"the source {kind} has no option {', '.join(map(repr, strange))}.{nearest(str(strange[0]), named)} "
            f"It has {allowed}"
        )
    if missing := [
        n for n, one in named.items() if one.default is inspect.Parameter.empty and n not in options
    ]:
        raise ConfigError(f"the source {kind} needs the option {', '.join(missing)}; put it under options")
    hints = _hints(read)
    wrong = [
        text
        for name, value in options.items()
        if name in hints and (text := _wrong(name, value, hints[name]))
    ]
    if wrong:
        raise ConfigError(f"the source {kind}: {'; '.join(wrong)}. Its options are {allowed}")


def _hints(read: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(read, include_extras=True)
    except (
        NameError,
        TypeError,
    ):  # a type that its module imports for type checkers only; no function of its own
        return {}


def _wrong(name: str, value: Any, hint: Any) -> str:
    """What is wrong with a value; nothing if it is of the type."""
    try:
        adapter = TypeAdapter(hint, config=STRICT)
    except PydanticUserError:  # no type that values can be checked against, or one with a config of its own
        return ""
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        said = dict.fromkeys(
            one["msg"].removeprefix("Value error, ") for one in error.errors(include_url=False)
        )
        texts = any("string" in one for one in said) and isinstance(value, bool | int | float)
        advice = "; put it in quotes, as YAML reads it as no text otherwise" if texts else ""
        return f"{name}={value!r:.200}: {', or '.join(said)}{advice}"
    return ""
