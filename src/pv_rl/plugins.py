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

__all__ = ["ENTRY_POINT_GROUP", "VERL_MODES", "loss_modes", "nearest", "plugin_manager"]

ENTRY_POINT_GROUP = "pv_rl.plugins"
BUILTIN = ("pv_rl.losses.builtin",)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
VERL_MODES = frozenset(
    {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"}
)
"""The loss_agg_modes that verl 0.9.1 has itself (verl/workers/config/actor.py:204)."""


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
        PluginError: a plugin's hook fails or returns something else, two plugins claim one name, or a name is
            verl's or not one that a spec can say. The text names the plugin.
    """
    entries: dict[str, LossModeEntry] = {}
    owners: dict[str, str] = {}
    for plugin in plugin_manager().hook.pv_rl_loss_modes.get_hookimpls():
        owner = str(plugin.plugin_name)
        try:
            added = list(cast(list[LossModeEntry], plugin.function()))
        except Exception as error:
            raise PluginError(f"the hook pv_rl_loss_modes of the plugin {owner} failed: {error!r}") from error
        for entry in added:
            if problem := _problem(entry):
                raise PluginError(f"the plugin {owner} adds {problem}")
            if entry.name in entries:
                raise PluginError(
                    f"the loss mode {entry.name!r} is claimed by {owners[entry.name]} and by {owner}; "
                    "rename one or uninstall one"
                )
            entries[entry.name], owners[entry.name] = entry, owner
    return MappingProxyType(entries)


def _problem(entry: object) -> str | None:
    if not isinstance(entry, LossModeEntry):
        return f"{entry!r} as a loss mode; a loss mode is a pv_rl.hookspecs.LossModeEntry"
    if not NAME.fullmatch(entry.name):
        return f"a loss mode named {entry.name!r}; a name is a letter, then letters, digits, '_' or '-'"
    if entry.name in VERL_MODES:
        return f"a loss mode named {entry.name!r}, which is verl's own; choose another name"
    if entry.default_eta is not None and not 0 <= entry.default_eta <= 1:
        return f"the loss mode {entry.name!r} with the default eta {entry.default_eta}; eta is in [0, 1]"
    return None


def nearest(given: str, allowed: Collection[str]) -> str:
    """A sentence that offers the allowed name most like `given`, with a leading blank, or ''."""
    by_folded = {name.casefold(): name for name in allowed}
    match = difflib.get_close_matches(given.strip().casefold(), by_folded, n=1, cutoff=0.5)
    return f" Did you mean {by_folded[match[0]]}?" if match else ""
