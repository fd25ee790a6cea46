"""One pluggy manager for the process, and the registries that its hooks fill.

A package joins through an entry point of the group `pv_rl.plugins` that names a module with hook
implementations (`pv_rl.hookspecs`). Ours are registered the same way, first. A plugin that fails takes nobody
else's modes with it: what is wrong with it is logged once, kept, and said to whoever asks for one of its names.
"""

from __future__ import annotations

import difflib
import importlib
import logging
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
    "STOCK_EQUIVALENT",
    "VERL_MODES",
    "broken_plugins",
    "loss_mode_entry",
    "loss_modes",
    "nearest",
    "owner_of",
    "plugin_manager",
    "refused_modes",
]

ENTRY_POINT_GROUP = "pv_rl.plugins"
BUILTIN = ("pv_rl.losses.builtin",)
VERL_MODES = frozenset(
    {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"}
)
"""The loss_agg_modes that verl 0.9.1 has itself (verl/workers/config/actor.py:204)."""
STOCK_EQUIVALENT = {"grpo": "seq-mean-token-mean", "dapo": "token-mean"}
"""What our modes of scope `batch` are called in verl, where every row and token counts."""

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
    """What is wrong with a plugin, by its name."""


def plugin_manager() -> pluggy.PluginManager:
    """The manager, with our plugins and every installed one that loads. See `broken_plugins` for the others."""
    return _loaded()[0]


@cache
def _loaded() -> tuple[pluggy.PluginManager, dict[str, str]]:
    """The manager, and why some installed plugins are not in it."""
    manager = pluggy.PluginManager("pv_rl")
    manager.add_hookspecs(hookspecs)
    for module in BUILTIN:
        manager.register(importlib.import_module(module), name=module)
    failed: dict[str, str] = {}
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        _load(manager, entry_point, failed)
    return manager, failed


def _load(manager: pluggy.PluginManager, entry_point: EntryPoint, failed: dict[str, str]) -> None:
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
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it runs a stranger's module, which may raise anything
        if manager.has_plugin(name):
            manager.unregister(name=name)
        failed[name] = f"it failed to load: {error!r}"


@cache
def _registry() -> Registry:
    manager, failed = _loaded()
    registry = Registry(broken=dict(failed))
    for plugin in manager.hook.pv_rl_loss_modes.get_hookimpls():
        owner = str(plugin.plugin_name)
        try:
            added = list(cast(list[LossModeEntry], plugin.function()))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
            registry.broken[owner] = f"its hook pv_rl_loss_modes failed: {error!r}"
            continue
        for entry in added:
            _enter(registry, owner, entry)
    for owner, reason in registry.broken.items():
        logger.error("pv-rl leaves out what is wrong with the plugin %s: %s", owner, reason)
    for reason in registry.refused.values():
        logger.error("pv-rl refuses a loss mode: %s", reason)
    return registry


def _enter(registry: Registry, owner: str, entry: object) -> None:
    problem = None
    if not isinstance(entry, LossModeEntry):
        problem = f"it adds {entry!r} as a loss mode; a loss mode is a pv_rl.hookspecs.LossModeEntry"
    elif entry.name in VERL_MODES:
        problem = f"it adds a loss mode named {entry.name!r}, which is verl's own; choose another name"
    elif entry.name in registry.owners:
        registry.refused[entry.name] = (
            f"the loss mode {entry.name!r} is claimed by {registry.owners[entry.name]} and by {owner}; "
            "rename one or uninstall one"
        )
        registry.entries.pop(entry.name, None)
    else:
        registry.entries[entry.name], registry.owners[entry.name] = entry, owner
    if problem is not None:
        registry.broken[owner] = "; ".join(filter(None, [registry.broken.get(owner), problem]))


def loss_modes() -> Mapping[str, LossModeEntry]:
    """Every loss-aggregation mode that can be used, by name, in order of registration."""
    return dict(_registry().entries)


def broken_plugins() -> Mapping[str, str]:
    """What is wrong, by plugin: it does not load, its hook fails, or it adds what cannot be served."""
    return dict(_registry().broken)


def refused_modes() -> Mapping[str, str]:
    """Names that two plugins claim, with both owners: neither is served."""
    return dict(_registry().refused)


def owner_of(name: str) -> str:
    """The plugin that adds this mode; `?` if none does."""
    return _registry().owners.get(name, "?")


def loss_mode_entry(name: str) -> LossModeEntry | None:
    """The mode of this name, or None if nobody adds one.

    Raises:
        PluginError: two plugins claim the name. The text names both.
    """
    registry = _registry()
    if name in registry.refused:
        raise PluginError(registry.refused[name])
    return registry.entries.get(name)


def nearest(given: str, allowed: Collection[str]) -> str:
    """A sentence that offers the allowed name most like `given`, with a leading blank, or ''."""
    by_folded = {name.casefold(): name for name in allowed}
    match = difflib.get_close_matches(given.strip().casefold(), by_folded, n=1, cutoff=0.5)
    return f" Did you mean {by_folded[match[0]]}?" if match else ""
