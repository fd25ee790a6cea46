"""A value as a Hydra override."""

from __future__ import annotations

import re

__all__ = ["override"]


def override(key: str, value: object) -> str:
    """`key=value`; text is quoted, since a path may hold `=`, `,`, brackets, quotes, backslashes or `${`."""
    if isinstance(value, int):
        return f"{key}={value}"
    text = re.sub(r"(\\+)(?='|\$\{|$)", r"\1\1", str(value))  # a backslash counts there, and nowhere else
    text = text.replace("'", "\\'").replace("${", "\\${")
    return f"{key}='{text}'"
