"""One pluggy manager for the process, and the registries that its hooks fill.

A package joins through an entry point of the group `pv_rl.plugins` that names a module with hook
implementations (`pv_rl.hookspecs`). Ours are registered the same way, first. A plugin that fails takes nobody
else's modes with it: what is wrong with it is logged once, kept, and said to whoever asks for one of its names.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import pkgutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import pluggy

from pv_rl.errors import PluginError
from pv_rl.hookspecs import LossModeEntry, RewardEntry

if TYPE_CHECKING:
    from pv_rl.rewards.degeneration import DegenerationRule

__all__ = [
    "ENTRY_POINT_GROUP",
    "LOSS_MODES",
    "REWARDS",
    "RULES",
    "STOCK_EQUIVALENT",
    "TRAINER_HOOKS",
    "VERL_MODES",
    "Door",
    "Kind",
    "broken_plugins",
    "command_groups",
    "degeneration_rules",
    "entries",
    "entry",
    "loss_mode_entry",
    "loss_modes",
    "nearest",
    "owner_of",
    "plugin_manager",
    "refused",
    "reward_entry",
    "rewards",
]

ENTRY_POINT_GROUP = "pv_rl.plugins"
VERL_MODES = frozenset(
    {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"}
)
"""The loss_agg_modes that verl 0.9.1 has itself (verl/workers/config/actor.py:204)."""
STOCK_EQUIVALENT = {"grpo": "seq-mean-token-mean", "dapo": "token-mean"}
"""What our modes of scope `batch` are called in verl, where every row and token counts."""

logger = logging.getLogger("pv_rl")


@dataclass(frozen=True, kw_only=True)
class Door:
    """The way by which packages add to a project."""

    project: str
    """Name of the pluggy project, as in the markers of its hooks."""
    group: str
    """Group of the entry points; each names a module with hook implementations."""
    hookspecs: str
    """The module of the hooks."""


PV_RL = Door(project="pv_rl", group=ENTRY_POINT_GROUP, hookspecs="pv_rl.hookspecs")


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One thing that plugins add."""

    hook: str
    """The hook that lists them."""
    what: str
    """What one is called in an error."""
    entry: str
    """The class of an entry, as `module:name`."""
    builtin: str
    """Our own plugin. Imported only for this kind: rewards do not need the torch that weightings need."""
    reserved: Mapping[str, str] = field(default_factory=dict)
    """Names that no plugin may take, each with the reason."""
    door: Door = PV_RL


LOSS_MODES = Kind(
    hook="pv_rl_loss_modes",
    what="loss mode",
    entry="pv_rl.hookspecs:LossModeEntry",
    builtin="pv_rl.losses.builtin",
    reserved=dict.fromkeys(VERL_MODES, "which is verl's own"),
)
REWARDS = Kind(
    hook="pv_rl_rewards", what="reward", entry="pv_rl.hookspecs:RewardEntry", builtin="pv_rl.rewards.builtin"
)
RULES = Kind(
    hook="pv_rl_degeneration_rules",
    what="degeneration rule",
    entry="pv_rl.rewards.degeneration.rule:DegenerationRule",
    builtin="pv_rl.rewards.degeneration.builtin",
)
TRAINER_HOOKS = Kind(
    hook="pv_rl_trainer_hooks",
    what="trainer hook",
    entry="pv_rl.hookspecs:TrainerHook",
    builtin="pv_rl.trainer_hooks",
)
KINDS = (LOSS_MODES, REWARDS, RULES, TRAINER_HOOKS)


@dataclass
class Registry:
    """What the plugins of this process add of one kind, and what is wrong with some of them."""

    entries: dict[str, Any] = field(default_factory=dict)
    """By name, ours first, then in order of registration."""
    owners: dict[str, str] = field(default_factory=dict)
    """The plugin of each name."""
    refused: dict[str, str] = field(default_factory=dict)
    """Names that two plugins claim, with the reason why neither is served."""
    broken: dict[str, str] = field(default_factory=dict)
    """What is wrong with a plugin, by its name."""


def plugin_manager() -> pluggy.PluginManager:
    """The manager, with every installed plugin that loads. See `broken_plugins` for the others."""
    return _loaded(PV_RL)[0]


@cache
def _loaded(door: Door) -> tuple[pluggy.PluginManager, dict[str, str]]:
    """The manager, and why some installed plugins are not in it."""
    manager = pluggy.PluginManager(door.project)
    manager.add_hookspecs(importlib.import_module(door.hookspecs))
    failed: dict[str, str] = {}
    for entry_point in entry_points(group=door.group):
        _load(manager, entry_point, failed)
    for name, reason in failed.items():
        logger.error("%s leaves out the plugin %s: %s", door.project, name, reason)
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
def _registry(kind: Kind) -> Registry:
    manager, _ = _loaded(kind.door)
    if not manager.has_plugin(kind.builtin):
        manager.register(importlib.import_module(kind.builtin), name=kind.builtin)
    registry = Registry()
    plugins = getattr(manager.hook, kind.hook).get_hookimpls()
    for plugin in sorted(plugins, key=lambda plugin: plugin.plugin_name != kind.builtin):
        owner = str(plugin.plugin_name)
        try:
            added = list(plugin.function())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
            registry.broken[owner] = f"its hook {kind.hook} failed: {error!r}"
            continue
        for entry in added:
            _enter(registry, kind, owner, entry)
    for owner, reason in registry.broken.items():
        logger.error("%s leaves out what is wrong with the plugin %s: %s", kind.door.project, owner, reason)
    for reason in registry.refused.values():
        logger.error("%s refuses a %s: %s", kind.door.project, kind.what, reason)
    return registry


def _enter(registry: Registry, kind: Kind, owner: str, entry: Any) -> None:
    problem = None
    if not isinstance(entry, pkgutil.resolve_name(kind.entry)):
        problem = f"it adds {entry!r} as a {kind.what}; a {kind.what} is a {kind.entry.replace(':', '.')}"
    elif entry.name in kind.reserved:
        problem = (
            f"it adds a {kind.what} named {entry.name!r}, {kind.reserved[entry.name]}; choose another name"
        )
    elif entry.name in registry.owners:
        registry.refused[entry.name] = (
            f"the {kind.what} {entry.name!r} is claimed by {registry.owners[entry.name]} and by {owner}; "
            "rename one or uninstall one"
        )
        registry.entries.pop(entry.name, None)
    else:
        registry.entries[entry.name], registry.owners[entry.name] = entry, owner
    if problem is not None:
        registry.broken[owner] = "; ".join(filter(None, [registry.broken.get(owner), problem]))


def entries(kind: Kind) -> Mapping[str, Any]:
    """Everything of this kind that can be used, by name, ours first."""
    return dict(_registry(kind).entries)


def entry(kind: Kind, name: str) -> Any:
    """The entry of this name, or None if nobody adds one.

    Raises:
        PluginError: two plugins claim the name. The text names both.
    """
    registry = _registry(kind)
    if name in registry.refused:
        raise PluginError(registry.refused[name])
    return registry.entries.get(name)


def loss_modes() -> Mapping[str, LossModeEntry]:
    """Every loss-aggregation mode that can be used, by name, in order of registration."""
    return entries(LOSS_MODES)


def loss_mode_entry(name: str) -> LossModeEntry | None:
    """The mode of this name, or None if nobody adds one; a `PluginError` if two plugins claim it."""
    return entry(LOSS_MODES, name)


def rewards() -> Mapping[str, RewardEntry]:
    """Every reward that can be used, by name, in order of registration."""
    return entries(REWARDS)


def reward_entry(name: str) -> RewardEntry | None:
    """The reward of this name, or None if nobody adds one; a `PluginError` if two plugins claim it."""
    return entry(REWARDS, name)


def degeneration_rules() -> Mapping[str, DegenerationRule]:
    """Every rule of the fluency veto, by name, in order of registration."""
    return entries(RULES)


def command_groups(hook: str = "pv_rl_commands", door: Door = PV_RL) -> list[Any]:
    """The Typer app of each plugin that adds commands; a plugin whose hook fails is logged and left out."""
    groups = []
    for plugin in getattr(_loaded(door)[0].hook, hook).get_hookimpls():
        try:
            groups.append(plugin.function())
        except Exception:
            logger.exception("%s leaves out the commands of the plugin %s", door.project, plugin.plugin_name)
    return groups


def broken_plugins(*kinds: Kind) -> Mapping[str, str]:
    """What is wrong, by plugin: it does not load, its hook fails, or it adds what cannot be served.

    Args:
        kinds: which hooks to look at; all if none is given.
    """
    kinds = kinds or KINDS
    found = {name: why for kind in kinds for name, why in _loaded(kind.door)[1].items()}
    for kind in kinds:
        for owner, reason in _registry(kind).broken.items():
            found[owner] = "; ".join(filter(None, [found.get(owner), reason]))
    return found


def refused(*kinds: Kind) -> Mapping[str, str]:
    """Names that two plugins claim, with both owners: neither is served. All kinds if none is given."""
    return {name: why for kind in kinds or KINDS for name, why in _registry(kind).refused.items()}


def owner_of(kind: Kind, name: str) -> str:
    """The plugin that adds this name; `?` if none does."""
    return _registry(kind).owners.get(name, "?")


def nearest(given: str, allowed: Collection[str]) -> str:
    """A sentence that offers the allowed name most like `given`, with a leading blank, or ''."""
    by_folded = {name.casefold(): name for name in allowed}
    match = difflib.get_close_matches(given.strip().casefold(), by_folded, n=1, cutoff=0.5)
    return f" Did you mean {by_folded[match[0]]}?" if match else ""
