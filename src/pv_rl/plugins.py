"""Plugin registries: what installed packages add, and what is wrong with some of them.

A package joins through an entry point of the group `pv_rl.plugins` that names a module with hook implementations
(`pv_rl.hookspecs`). Our own are registered the same way, first. A plugin that fails does not affect the others: the
registry logs the reason once, keeps it, and shows it in the error for a name that nobody adds.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import logging
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from pv_rl.errors import ConfigError, PluginError

__all__ = [
    "JUDGES",
    "LOSS_MODES",
    "REWARDS",
    "RULES",
    "STOCK_EQUIVALENT",
    "TRAINER_HOOKS",
    "VERL_MODES",
    "Registry",
    "forget_plugins",
    "hook_results",
    "left_out",
    "misfit",
    "nearest",
    "plugin_manager",
]

VERL_MODES = {
    "token-mean": "dapo@batch",
    "token-sum": "",
    "seq-mean-token-sum": "dr_grpo:1@batch",
    "seq-mean-token-mean": "grpo@batch",
    "seq-mean-token-sum-norm": "dr_grpo:MAX_LENGTH@batch",
}
"""The loss_agg_modes that verl 0.9.1 has itself (verl/workers/config/actor.py:212), and what they are called here."""
STOCK_EQUIVALENT = {"grpo": "seq-mean-token-mean", "dapo": "token-mean"}
"""What our modes of scope `batch` are called in verl, where every row and token counts."""

logger = logging.getLogger("pv_rl")


@dataclass(frozen=True, kw_only=True, eq=False)
class Registry:
    """What plugins add through one hook: entries with a name. It is filled when it is first used."""

    hook: str
    """The hook that lists them."""
    what: str
    """What one is called in an error."""
    entry: str
    """The class of an entry, as `module:name`."""
    builtin: str | None = None
    """Our own plugin. Imported only for this registry: rewards do not need the torch that weightings need."""
    reserved: Mapping[str, str] = field(default_factory=dict)
    """Names that no plugin may take, each with the reason."""
    project: str = "pv_rl"
    """Name of the pluggy project. Its hooks are in PROJECT.hookspecs, its entry points in the group PROJECT.plugins."""

    def entries(self) -> dict[str, Any]:
        """Everything that can be used, by name, ours first, then in order of registration."""
        return dict(_contents(self).entries)

    def own(self) -> tuple[Any, ...]:
        """The entries of our own plugin, in their order."""
        return tuple(one for name, one in self.entries().items() if self.owner(name) == self.builtin)

    def find(self, name: str) -> Any:
        """The entry of this name, or None if nobody adds one.

        Raises:
            PluginError: two plugins claim the name. The text names both.
        """
        if refused := _contents(self).refused.get(name):
            raise PluginError(refused)
        return _contents(self).entries.get(name)

    def named(self, name: object) -> Any:
        """The entry of this name.

        Raises:
            ConfigError: nobody adds it. The text lists what there is, and what is wrong with plugins.
            PluginError: two plugins claim it.
        """
        found = self.find(name) if isinstance(name, str) else None
        if found is not None:
            return found
        there, wrong = self.entries(), "".join(f" Left out: {one}." for one in left_out(self))
        like = f"{name!r:.80}.{nearest(str(name), there)}"
        raise ConfigError(f"there is no {self.what} {like} Available: {', '.join(there)}.{wrong}")

    def owner(self, name: str) -> str:
        """The plugin that adds this name; `?` if none does."""
        return _contents(self).owners.get(name, "?")

    def refused(self) -> dict[str, str]:
        """Names that two plugins claim, each with the reason why neither is served."""
        return dict(_contents(self).refused)

    def broken(self) -> dict[str, str]:
        """What is wrong, by plugin: it does not load, its hook fails, or it adds what cannot be served."""
        found = dict(_loaded(self.project)[1])
        for owner, reason in _contents(self).broken.items():
            found[owner] = "; ".join(filter(None, [found.get(owner), reason]))
        return found


LOSS_MODES = Registry(
    hook="pv_rl_loss_modes",
    what="loss mode",
    entry="pv_rl.hookspecs:LossModeEntry",
    builtin="pv_rl.losses.weightings",
    reserved=dict.fromkeys(VERL_MODES, "which is verl's own"),
)
REWARDS = Registry(
    hook="pv_rl_rewards", what="reward", entry="pv_rl.hookspecs:RewardEntry", builtin="pv_rl.rewards.builtin"
)
JUDGES = Registry(hook="pv_rl_judges", what="judge", entry="pv_rl.hookspecs:JudgeEntry")
RULES = Registry(
    hook="pv_rl_degeneration_rules",
    what="degeneration rule",
    entry="pv_rl.hookspecs:DegenerationRule",
    builtin="pv_rules",
)
TRAINER_HOOKS = Registry(
    hook="pv_rl_trainer_hooks",
    what="trainer hook",
    entry="pv_rl.hookspecs:TrainerHook",
    builtin="pv_rl.trainer_hooks",
)


def plugin_manager() -> pluggy.PluginManager:
    """The manager, with every installed plugin that loads. See `left_out` for the others."""
    return _loaded("pv_rl")[0]


def forget_plugins(*, reload: bool = False) -> None:
    """Fill all registries again at their next use: call it after (un)registering a plugin with the manager.

    Args:
        reload: also load the installed packages again.
    """
    _contents.cache_clear()
    if reload:
        _loaded.cache_clear()


def hook_results(hook: str, project: str = "pv_rl", **arguments: Any) -> Iterator[Any]:
    """What each plugin returns from a hook with these arguments; one whose hook fails is logged and left out."""
    for plugin in getattr(_loaded(project)[0].hook, hook).get_hookimpls():
        try:
            yield plugin.function(*(arguments[name] for name in plugin.argnames))
        except Exception:
            logger.exception("%s leaves out the hook %s of the plugin %s", project, hook, plugin.plugin_name)


def left_out(*registries: Registry) -> list[str]:
    """Sentences on what is wrong with plugins, and on names that two plugins claim. Of all pv-rl's if none is given."""
    registries = registries or (LOSS_MODES, REWARDS, JUDGES, RULES, TRAINER_HOOKS)
    broken = [f"{owner}: {why}" for one in registries for owner, why in one.broken().items()]
    refused = [why for one in registries for why in one.refused().values()]
    return list(dict.fromkeys(broken + refused))


def nearest(given: str, allowed: Collection[str]) -> str:
    """A sentence that offers the allowed name most like `given`, a completion if any, with a leading blank, or ''."""
    by_folded, wanted = {name.casefold(): name for name in allowed}, given.strip().casefold()
    longer = [name for name in by_folded if wanted and name.startswith(wanted)]
    match = difflib.get_close_matches(wanted, longer or by_folded, n=1, cutoff=0 if longer else 0.5)
    return f" Did you mean {by_folded[match[0]]}?" if match else ""


def misfit(build: Callable[..., Any], given: Mapping[str, Any], error: TypeError) -> str:
    """Why `build(**given)` raised the error: an option that it does not have or that is missing, then all options."""
    try:
        every = inspect.signature(build).parameters
    except ValueError:  # a builtin, such as dict
        return f"{error}."
    taken = {name: one for name, one in every.items() if not one.kind.name.startswith("VAR_")}
    strange = [one for one in given if one not in taken and len(taken) == len(every)]
    lacks = [name for name, one in taken.items() if one.default is one.empty and name not in given]
    why = f"the option {lacks[0]} is missing." if lacks else f"{error}."
    if strange:
        why = f"there is no option {strange[0]!r:.80}.{nearest(str(strange[0]), taken)}"
    return f"{why} Options: {', '.join(taken) or 'none'}"


@cache
def _loaded(project: str) -> tuple[pluggy.PluginManager, dict[str, str]]:
    """The manager, and why some installed plugins are not in it."""
    manager = pluggy.PluginManager(project)
    manager.add_hookspecs(importlib.import_module(f"{project}.hookspecs"))
    failed: dict[str, str] = {}
    for entry_point in sorted(entry_points(group=f"{project}.plugins"), key=lambda one: one.name):
        _load(manager, entry_point, failed)
    for name, reason in failed.items():
        logger.error("%s leaves out the plugin %s: %s", project, name, reason)
    return manager, failed


def _load(manager: pluggy.PluginManager, entry_point: EntryPoint, failed: dict[str, str]) -> None:
    """Register one installed plugin under its package's name, or keep the reason why it cannot be."""
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


@dataclass
class _Contents:
    entries: dict[str, Any] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    """The plugin of each name."""
    refused: dict[str, str] = field(default_factory=dict)
    """Names that two plugins claim: neither is served."""
    broken: dict[str, str] = field(default_factory=dict)
    """What is wrong with a plugin, by its name."""


@cache
def _contents(registry: Registry) -> _Contents:
    manager, builtin = _loaded(registry.project)[0], registry.builtin
    if builtin is not None and not manager.has_plugin(builtin):
        manager.register(importlib.import_module(builtin), name=builtin)
    contents = _Contents()
    plugins = getattr(manager.hook, registry.hook).get_hookimpls()
    for plugin in sorted(plugins, key=lambda plugin: plugin.plugin_name != builtin):
        owner = str(plugin.plugin_name)
        try:
            added = list(plugin.function())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
            contents.broken[owner] = f"its hook {registry.hook} failed: {error!r}"
            continue
        for entry in added:
            _enter(contents, registry, owner, entry)
    for owner, reason in contents.broken.items():
        logger.error("%s leaves out what is wrong with the plugin %s: %s", registry.project, owner, reason)
    for reason in contents.refused.values():
        logger.error("%s refuses a %s: %s", registry.project, registry.what, reason)
    return contents


def _enter(contents: _Contents, registry: Registry, owner: str, entry: Any) -> None:
    what, name = registry.what, getattr(entry, "name", None)
    if not isinstance(entry, pkgutil.resolve_name(registry.entry)):
        problem = f"it adds {entry!r} as a {what}; a {what} is a {registry.entry.replace(':', '.')}"
    elif name in registry.reserved:
        problem = f"it adds a {what} named {name!r}, {registry.reserved[name]}; choose another name"
    elif name in contents.owners:
        owners = f"{contents.owners[name]} and by {owner}"
        contents.refused[name] = f"the {what} {name!r} is claimed by {owners}; rename one or uninstall one"
        contents.entries.pop(name, None)
        return
    else:
        contents.entries[name], contents.owners[name] = entry, owner
        return
    contents.broken[owner] = "; ".join(filter(None, [contents.broken.get(owner), problem]))
