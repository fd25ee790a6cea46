"""Runs and config groups of `hydra_configs`: their names. `choices` checks what verl does not."""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["GROUPS", "complete", "options"]

SOURCES = ("pv_rl.hydra_configs", "pv_cpu.hydra_configs")
"""Packages with our groups; the second comes with pv-cpu."""
GROUPS = ("recipe", "reward", "judge", "cluster", "trainer_mode", "logging", "sentinel", "sweep")
"""The groups that a command line may choose from, in the order of the docs."""


@cache
def options(group: str) -> tuple[str, ...]:
    """The names in a group, sorted; of the group `runs`, those of the runs."""
    found = set()
    for source in SOURCES:
        if importlib.util.find_spec(source.partition(".")[0]) is not None:
            folder = files(source) / group
            if folder.is_dir():
                found |= {one.name[:-5] for one in folder.iterdir() if one.name.endswith(".yaml")}
    return tuple(sorted(found))


def complete(ctx: Any) -> list[str]:
    """For the shell: `run=NAME` and `GROUP=NAME`, or the names alone where bash has cut the word at its `=`."""
    words = [word for value in ctx.params.values() if isinstance(value, list | tuple) for word in value]
    before = next((word for word in reversed(words) if word != "="), "")
    choices = {"run": options("runs"), **{group: options(group) for group in GROUPS}}
    if before in choices:
        return list(choices[before])
    return [f"{key}={name}" for key, names in choices.items() for name in names]
