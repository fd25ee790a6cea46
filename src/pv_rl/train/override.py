"""A value as a Hydra override."""

from __future__ import annotations

__all__ = ["override"]


def override(key: str, value: object) -> str:
    """`key=value`; text is quoted, since a path may hold `=`, `,`, brackets, quotes or `${`."""
    if isinstance(value, int):
        return f"{key}={value}"
    text = str(value).replace("'", "\\'").replace("${", "\\${")
    return f"{key}='{text}'"
