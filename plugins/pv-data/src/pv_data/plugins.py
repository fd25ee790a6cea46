"""Registries of pv-data: sources and generation methods, by `pv_rl.plugins`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pv_rl.plugins import Registry, hook_results

__all__ = ["METHODS", "SOURCES", "command_groups"]

SOURCES = Registry(
    hook="pv_data_sources",
    what="source",
    entry="pv_data.hookspecs:SourceEntry",
    builtin="pv_data.sources.builtin",
    project="pv_data",
)
METHODS = Registry(
    hook="pv_data_methods",
    what="generation method",
    entry="pv_data.hookspecs:MethodEntry",
    builtin="pv_data.methods.builtin",
    project="pv_data",
)


def command_groups() -> Iterator[Any]:
    """The Typer app of each plugin that adds commands to `pv-data`."""
    return hook_results("pv_data_commands", "pv_data")
