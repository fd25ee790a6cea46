"""Plugin registries of pv-data: sources and generation methods, by `pv_rl.plugins`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pv_rl.errors import ConfigError
from pv_rl.plugins import Namespace, Registry, hook_results, nearest

__all__ = ["METHODS", "SOURCES", "command_groups", "named"]

PV_DATA = Namespace(project="pv_data", group="pv_data.plugins", hookspecs="pv_data.hookspecs")
SOURCES = Registry(
    hook="pv_data_sources",
    what="source",
    entry="pv_data.hookspecs:SourceEntry",
    builtin="pv_data.sources.builtin",
    namespace=PV_DATA,
)
METHODS = Registry(
    hook="pv_data_methods",
    what="generation method",
    entry="pv_data.hookspecs:MethodEntry",
    builtin="pv_data.methods.builtin",
    namespace=PV_DATA,
)


def command_groups() -> Iterator[Any]:
    """The Typer app of each plugin that adds commands to `pv-data`."""
    return hook_results("pv_data_commands", PV_DATA)


def named(registry: Registry, name: str) -> Any:
    """The entry of this name.

    Raises:
        ConfigError: nobody adds it. The text lists what there is, and what is wrong with plugins.
        PluginError: two plugins claim it.
    """
    found = registry.find(name)
    if found is not None:
        return found
    there = registry.entries()
    broken = "".join(f" The plugin {owner} is left out: {why}." for owner, why in registry.broken().items())
    raise ConfigError(
        f"no {registry.what} is called {name!r}.{nearest(name, there)} There are {', '.join(sorted(there))}.{broken}"
    )
