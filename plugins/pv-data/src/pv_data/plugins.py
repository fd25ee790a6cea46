"""Registries of pv-data: sources and generation methods, by `pv_rl.plugins`."""

from __future__ import annotations

from typing import Any

from pv_rl import plugins
from pv_rl.errors import ConfigError
from pv_rl.plugins import Door, Kind, broken_plugins, entries, entry, nearest

__all__ = ["METHODS", "SOURCES", "command_groups", "named"]

PV_DATA = Door(project="pv_data", group="pv_data.plugins", hookspecs="pv_data.hookspecs")
SOURCES = Kind(
    hook="pv_data_sources",
    what="source",
    entry="pv_data.hookspecs:SourceEntry",
    builtin="pv_data.sources.builtin",
    door=PV_DATA,
)
METHODS = Kind(
    hook="pv_data_methods",
    what="generation method",
    entry="pv_data.hookspecs:MethodEntry",
    builtin="pv_data.methods.builtin",
    door=PV_DATA,
)


def command_groups() -> list[Any]:
    """The Typer app of each plugin that adds commands to `pv-data`."""
    return plugins.command_groups("pv_data_commands", PV_DATA)


def named(kind: Kind, name: str) -> Any:
    """The entry of this name.

    Raises:
        ConfigError: nobody adds it. The text lists what there is, and what is wrong with plugins.
        PluginError: two plugins claim it.
    """
    found = entry(kind, name)
    if found is not None:
        return found
    there = entries(kind)
    broken = "".join(
        f" The plugin {owner} is left out: {why}." for owner, why in broken_plugins(kind).items()
    )
    raise ConfigError(
        f"there is no {kind.what} {name!r}.{nearest(name, there)} Available: {', '.join(sorted(there))}.{broken}"
    )
