"""Quoting of a value as a Hydra override."""

from __future__ import annotations

import re

__all__ = ["override", "quoted"]


def override(key: str, value: object) -> str:
    """`key=value`; text is quoted, since a path may hold `=`, `,`, brackets, quotes, backslashes or `${`."""
    return f"{key}={value if isinstance(value, int) else quoted(str(value))}"


def quoted(text: str) -> str:
    """The text as Hydra reads it back, whatever is in it: a value, or an element of a list."""
    text = re.sub(r"(?<!\\)(\\+)(?='|\$\{|\Z)", r"\1\1", text)  # a backslash counts there, and nowhere else
    return "'" + text.replace("'", "\\'").replace("${", "\\${") + "'"
