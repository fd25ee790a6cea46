"""Runs and config groups of `hydra_configs`: their names. `choices` checks what verl does not."""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib.resources import files

__all__ = ["GROUPS", "options"]

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
