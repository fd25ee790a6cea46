"""One pluggy manager for the process, and the registries that its hooks fill.

A package joins through an entry point of the group `pv_rl.plugins` that names a module with hook
implementations (`pv_rl.hookspecs`). Ours are registered the same way, first.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import cast

import pluggy

from pv_rl import hookspecs
from pv_rl.errors import PluginError
from pv_rl.hookspecs import LossModeEntry

__all__ = ["ENTRY_POINT_GROUP", "loss_modes", "nearest", "plugin_manager"]

ENTRY_POINT_GROUP = "pv_rl.plugins"
BUILTIN = ("pv_rl.losses.builtin",)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@cache
def plugin_manager() -> pluggy.PluginManager:
    """The manager, with our plugins and every installed one.

    Raises:
        PluginError: an installed plugin cannot be imported or implements a hook that does not exist.
    """
    manager = pluggy.PluginManager("pv_rl")
    manager.add_hookspecs(hookspecs)
    for module in BUILTIN:
        manager.register(importlib.import_module(module), name=module)
    try:
        manager.load_setuptools_entrypoints(ENTRY_POINT_GROUP)
        manager.check_pending()
    except Exception as error:
        raise PluginError(
            f"a plugin of the entry point group {ENTRY_POINT_GROUP!r} failed to load: {error!r}. "
            "Fix or uninstall it."
        ) from error
    return manager


@cache
def loss_modes() -> Mapping[str, LossModeEntry]:
    """Every loss-aggregation mode by name, in order of registration.

    Raises:
        PluginError: two plugins claim one name, or a name is not one that a spec can say.
    """
    manager = plugin_manager()
    entries: dict[str, LossModeEntry] = {}
    owners: dict[str, str | None] = {}
    for plugin in manager.hook.pv_rl_loss_modes.get_hookimpls():
        for entry in cast(list[LossModeEntry], plugin.function()):
            if not NAME.fullmatch(entry.name):
                raise PluginError(
                    f"the plugin {plugin.plugin_name} adds a loss mode named {entry.name!r}; "
                    "a name is a letter, then letters, digits, '_' or '-'"
                )
            if entry.name in entries:
                raise PluginError(
                    f"the loss mode {entry.name!r} is claimed by {owners[entry.name]} and by "
                    f"{plugin.plugin_name}; rename one or uninstall one"
                )
            entries[entry.name], owners[entry.name] = entry, plugin.plugin_name
    return MappingProxyType(entries)


def nearest(given: str, allowed: Collection[str]) -> str:
    """A sentence that offers the allowed name most like `given`, with a leading blank, or ''."""
    by_folded = {name.casefold(): name for name in allowed}
    match = difflib.get_close_matches(given.strip().casefold(), by_folded, n=1, cutoff=0.5)
    return f" Did you mean {by_folded[match[0]]}?" if match else ""
