"""One pluggy manager for the process, and the registries that its hooks fill.

A package joins through an entry point of the group `pv_rl.plugins` that names a module with hook
implementations (`pv_rl.hookspecs`). Ours are registered the same way, first. A plugin that fails takes nobody
else's modes with it: what is wrong with it is logged once, kept, and said to whoever asks for one of its names.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

import pluggy

from pv_rl import hookspecs
from pv_rl.errors import PluginError
from pv_rl.hookspecs import LossModeEntry

__all__ = [
    "ENTRY_POINT_GROUP",
    "VERL_MODES",
    "broken_plugins",
    "loss_mode_entry",
    "loss_modes",
    "nearest",
    "plugin_manager",
]

ENTRY_POINT_GROUP = "pv_rl.plugins"
BUILTIN = ("pv_rl.losses.builtin",)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
VERL_MODES = frozenset(
    {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"}
)
"""The loss_agg_modes that verl 0.9.1 has itself (verl/workers/config/actor.py:204)."""

logger = logging.getLogger("pv_rl")


@dataclass
class Registry:
    """What the plugins of this process add, and what is wrong with some of them."""

    entries: dict[str, LossModeEntry] = field(default_factory=dict)
    """Modes by name, in order of registration."""
    owners: dict[str, str] = field(default_factory=dict)
    """The plugin of each name."""
    refused: dict[str, str] = field(default_factory=dict)
    """Names that two plugins claim, with the reason why neither is served."""
    broken: dict[str, str] = field(default_factory=dict)
    """Plugins that failed, with the reason."""


@cache
def plugin_manager() -> pluggy.PluginManager:
    """The manager, with our plugins and every installed one that loads. See `broken_plugins` for the others."""
    manager = pluggy.PluginManager("pv_rl")
    manager.add_hookspecs(hookspecs)
    for module in BUILTIN:
        manager.register(importlib.import_module(module), name=module)
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        _load(manager, entry_point)
    return manager


_failed_to_load: dict[str, str] = {}


def _load(manager: pluggy.PluginManager, entry_point: EntryPoint) -> None:
    """Register one installed plugin under its package's name, or keep why that cannot be done."""
    package = entry_point.dist.name if entry_point.dist is not None else "?"
    name = f"{package} ({entry_point.name} = {entry_point.value})"
    if manager.has_plugin(name):  # the same package twice on the path
        return
    try:
        plugin = entry_point.load()
        if manager.is_registered(plugin):
            return
        manager.register(plugin, name=name)
        manager.check_pending()
    except Exception as error:  # noqa: BLE001 - it runs a stranger's module, which may raise anything
        if manager.has_plugin(name):
            manager.unregister(name=name)
        _failed_to_load[name] = f"it failed to load: {error!r}"


@cache
def _registry() -> Registry:
    manager = plugin_manager()
    registry = Registry(broken=dict(_failed_to_load))
    for plugin in manager.hook.pv_rl_loss_modes.get_hookimpls():
        owner = str(plugin.plugin_name)
        try:
            added = list(cast(list[LossModeEntry], plugin.function()))
        except Exception as error:  # noqa: BLE001 - likewise
            registry.broken[owner] = f"its hook pv_rl_loss_modes failed: {error!r}"
            continue
        for entry in added:
            _enter(registry, owner, entry)
    for owner, reason in registry.broken.items():
        logger.error("pv-rl goes on without the plugin %s: %s", owner, reason)
    for reason in registry.refused.values():
        logger.error("pv-rl refuses a loss mode: %s", reason)
    return registry


def _enter(registry: Registry, owner: str, entry: LossModeEntry) -> None:
    if problem := _problem(entry):
        registry.broken[owner] = f"it adds {problem}"
    elif entry.name in registry.owners:
        registry.refused[entry.name] = (
            f"the loss mode {entry.name!r} is claimed by {registry.owners[entry.name]} and by {owner}; "
            "rename one or uninstall one"
        )
        registry.entries.pop(entry.name, None)
    else:
        registry.entries[entry.name], registry.owners[entry.name] = entry, owner


def loss_modes() -> Mapping[str, LossModeEntry]:
    """Every loss-aggregation mode that can be used, by name, in order of registration."""
    return dict(_registry().entries)


def broken_plugins() -> Mapping[str, str]:
    """What is wrong, by plugin: it does not load, its hook fails, or it adds what cannot be served."""
    return dict(_registry().broken)


def loss_mode_entry(name: str) -> LossModeEntry | None:
    """The mode of this name, or None if nobody adds one.

    Raises:
        PluginError: two plugins claim the name. The text names both.
    """
    registry = _registry()
    if name in registry.refused:
        raise PluginError(registry.refused[name])
    return registry.entries.get(name)


def _problem(entry: object) -> str | None:
    if not isinstance(entry, LossModeEntry):
        return f"{entry!r} as a loss mode; a loss mode is a pv_rl.hookspecs.LossModeEntry"
    if not NAME.fullmatch(entry.name):
        return f"a loss mode named {entry.name!r}; a name is a letter, then letters, digits, '_' or '-'"
    if entry.name in VERL_MODES:
        return f"a loss mode named {entry.name!r}, which is verl's own; choose another name"
    for parameter in entry.parameters:
        if parameter.default is not None and not parameter.low <= parameter.default <= parameter.high:
            allowed = f"[{parameter.low:g}, {parameter.high:g}]"
            return (
                f"the loss mode {entry.name!r} with the default {parameter.default:g} for {parameter.name}, "
                f"which is in {allowed}"
            )
    return None


def nearest(given: str, allowed: Collection[str]) -> str:
    """A sentence that offers the allowed name most like `given`, with a leading blank, or ''."""
    by_folded = {name.casefold(): name for name in allowed}
    match = difflib.get_close_matches(given.strip().casefold(), by_folded, n=1, cutoff=0.5)
    return f" Did you mean {by_folded[match[0]]}?" if match else ""
