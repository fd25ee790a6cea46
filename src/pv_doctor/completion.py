"""Shell completion of `run=NAME` and `GROUP=NAME`."""

from __future__ import annotations

from typing import Any

from pv_rl.recipes import GROUPS, options

__all__ = ["complete"]


def complete(ctx: Any) -> list[str]:
    """For the shell: `run=NAME` and `GROUP=NAME`, or the names alone where bash has cut the word at its `=`."""
    words = [word for value in ctx.params.values() if isinstance(value, list | tuple) for word in value]
    before = next((word for word in reversed(words) if word != "="), "")
    choices = {"run": options("runs"), **{group: options(group) for group in GROUPS}}
    if before in choices:
        return list(choices[before])
    return [f"{key}={name}" for key, names in choices.items() for name in names]
