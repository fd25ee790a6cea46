"""A shell script that starts verl without us."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

__all__ = ["script"]


def script(command: Sequence[str], environment: Mapping[str, str], heading: str) -> str:
    """The command, an argument a line, with its environment; `heading` comes first."""
    variables = (f"{name}={shlex.quote(value)}" for name, value in environment.items())
    lines = [*variables, shlex.join(command[:3]), *map(shlex.quote, command[3:])]
    return f"#!/bin/sh\n{heading}\n" + " \\\n  ".join(lines) + "\n"
