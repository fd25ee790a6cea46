"""Unknown keys of overrides: settings that no config has and that no code reads, each with the nearest name.

Hydra refuses `trainer.total_step=9` and recommends `+trainer.total_step=9`, which adds a key that nothing reads. Here
an added key is known if a config or one of verl's config classes has it, if its section accepts any key, or if the
source of verl or of a plugin reads it.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_rl.errors import ConfigError

__all__ = ["check_keys"]

OPEN = (
    "actor_rollout_ref.model.override_config",
    "critic.model.override_config",
    "launch.env",
    "launch.prepare",
    "plan",
    "ray_kwargs.ray_init.runtime_env",
    "reward.custom_reward_function.reward_kwargs",
    "reward.reward_kwargs",
    "sentinel",
)
"""Mappings that accept other keys than those of the config: what reads them checks them, or passes them on."""
CLOSED = ("recipe", "cluster")
SURE, LIKE = 0.75, 0.5
"""Similarity of two names from which one is surely a misspelling of the other, and from which it is offered."""
DEFAULT_MODULE = "verl.trainer.main_ppo"
PLUGINS = ("pv_rl.plugins", "verl.plugins")
FILES = ("reward.custom_reward_function.path", "data.custom_cls.path", "actor_rollout_ref.model.external_lib")
"""Settings that name code of the user."""
RAY = "ray_kwargs.ray_init"


def check_keys(overrides: Iterable[str], config: DictConfig) -> None:
    """Refuse keys with a dot that nothing reads.

    Args:
        overrides: Hydra's, also sweeps over values; those without a dot in the key are left to `check_arguments`.
        config: composed without the keys that these overrides add.

    Raises:
        ConfigError: a key is unknown; the text has all of them, each with the nearest name.
    """
    found = dict.fromkeys(one for key, sign in _keys(overrides) for one in _unknown(key, sign, config))
    if found:
        raise ConfigError("\n".join(found))


def _keys(overrides: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each key that an override sets, those inside `key={a: 1}` too, and the sign before it: `+`, `++` or none."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import OverrideType
    from hydra.errors import HydraException

    signs = {OverrideType.ADD: "+", OverrideType.FORCE_ADD: "++", OverrideType.CHANGE: ""}
    parser = OverridesParser.create()
    for text in overrides:
        try:
            parsed = parser.parse_override(text)
        except HydraException:
            continue  # Hydra reports it
        key = parsed.key_or_group
        if "." not in key or "/" in key or parsed.type not in signs or key.startswith("hydra."):
            continue
        value = None if parsed.is_sweep_override() else parsed.value()
        for inner in _inner(value):
            yield ".".join((key, *inner)), signs[parsed.type]


def _inner(value: object) -> Iterator[tuple[str, ...]]:
    if not isinstance(value, Mapping) or not value:
        yield ()
        return
    for key, below in value.items():
        yield from ((str(key), *rest) for rest in _inner(below))


def _unknown(key: str, sign: str, config: DictConfig) -> Iterator[str]:
    parts = key.split(".")
    node: Any = config
    for depth, part in enumerate(parts):
        parent = ".".join(parts[:depth])
        if node is None or parent in OPEN or (isinstance(node, DictConfig) and not len(node)):
            return
        if isinstance(node, ListConfig) or not isinstance(node, DictConfig):
            return  # an element, or an interpolation: Hydra knows better
        if part not in node:
            yield from _judge(parts, depth, sign, node, config)
            return
        node = None if OmegaConf.is_missing(node, part) else _below(node, part)


def _below(node: DictConfig, key: str) -> Any:
    try:
        return node[key]
    except OmegaConfBaseException:  # an interpolation that has no value yet
        return None


def _judge(
    parts: Sequence[str], depth: int, sign: str, node: DictConfig, config: DictConfig
) -> Iterator[str]:
    """The error for a key whose part at `depth` the section `node` does not have; nothing if it may be added."""
    key, section, name = ".".join(parts[: depth + 1]), ".".join(parts[:depth]), parts[depth]
    fields = _fields(node, section)
    siblings = {str(one) for one in node} | fields
    keys = [*_walk(OmegaConf.to_container(config), "")]
    elsewhere = [one for one in keys if one.endswith(f".{key}")]
    elsewhere = elsewhere or [one for one in keys if one.endswith(f".{name}")]
    if section in CLOSED:
        known = False
    elif section:
        known = name in fields or _is_read(parts[: depth + 1], generic=not elsewhere, config=config)
    else:  # a section of the user's own, unless it is misspelt or one of another place
        own = not _like(name, siblings, SURE) and not elsewhere
        other = (
            OmegaConf.select(config, "launch.module") != DEFAULT_MODULE
        )  # its config may have such a section
        known = bool(sign) and (own or (other and _is_read(parts[:2], generic=False, config=config)))
    if known and sign:
        return
    if known:
        yield f"{key}: verl reads this key, but its config does not list it. Write +{key}=..."
        return
    below = f"{section}." if section else ""
    near = [below + one for one in _like(name, siblings, SURE)] or elsewhere[:3]
    near = near or [below + one for one in _like(name, siblings, LIKE)]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    where = f"pv-rl train run=... --cfg job{f' --package {section}' if section else ''}"
    yield f"{sign}{key}: there is no such setting, and nothing reads it.{hint} All settings there: {where}"


def _like(name: str, names: Iterable[str], cutoff: float) -> list[str]:
    folded = {one.casefold(): one for one in names}
    return [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)]


def _fields(node: DictConfig, path: str) -> set[str]:
    """Keys of a section beside those of the config: the fields of its class, or the parameters of `ray.init`."""
    if path == RAY:
        import ray

        parameters = inspect.signature(ray.init).parameters
        private = re.findall(
            r"""kwargs\.pop\(\s*["'](\w+)["']""", inspect.getsource(inspect.unwrap(ray.init))
        )
        return {*parameters, *private} - {"kwargs"}
    target = node.get("_target_")
    if not isinstance(target, str):
        return set()
    try:
        from hydra.utils import get_class

        kind: Any = get_class(target)
        return {one.name for one in dataclasses.fields(kind)}
    except Exception:  # noqa: BLE001 - a class of anybody's; without it the source decides
        return set()


def _walk(tree: object, path: str) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, below in tree.items():
            here = f"{path}.{key}" if path else str(key)
            yield here
            yield from _walk(below, here)


def _is_read(parts: Sequence[str], *, generic: bool, config: DictConfig) -> bool:
    """Whether some source reads the key: as `PARENT.NAME`, `PARENT.get("NAME")` and the like.

    Args:
        parts: of the key.
        generic: whether `config.get("NAME")` counts, where the section has another name in the code.
        config: names files of the user's code.
    """
    parent, name = map(re.escape, parts[-2:])
    quoted = rf"""["']{name}["']"""
    reads = re.compile(
        rf"""(\w+)["'\])]*(?:\.(?:get|pop|setdefault)\(\s*{quoted}|\[{quoted}\])"""
        rf"""|(?:get|has)attr\(\s*(?:\w+\.)*(\w+),\s*{quoted}|{quoted}\s+(?:not\s+)?in\s+(?:\w+\.)*(\w+)"""
        rf"""|["'][\w.]*\b({parent})\.{name}["']"""
        rf"""|(?:config|cfg)\.({parent})\.{name}\b|(\w*{parent}_(?:config|cfg))\.{name}\b"""
    )
    for text in _sources(tuple(sorted(_own_files(config)))):
        if parts[-1] not in text:
            continue
        for found in reads.finditer(text):
            reader = next(filter(None, found.groups()))
            if parent in reader or (generic and re.search(r"config|cfg|kwargs", reader)):
                return True
    return False


def _own_files(config: DictConfig) -> Iterator[str]:
    for key in FILES:
        found = OmegaConf.select(config, key, throw_on_resolution_failure=False)
        if isinstance(found, str) and (path := Path(found.removeprefix("file://")).expanduser()).is_file():
            yield str(path)
    module = OmegaConf.select(config, "launch.module", throw_on_resolution_failure=False)
    if isinstance(module, str) and not module.startswith("verl.") and (file := _file(module)):
        yield file


def _file(module: str) -> str | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec is not None else None


@functools.cache
def _sources(files: tuple[str, ...]) -> tuple[str, ...]:
    """The source of verl, of every installed plugin, and of these files."""
    packages = {
        "verl",
        *(one.value.split(".")[0].split(":")[0] for g in PLUGINS for one in entry_points(group=g)),
    }
    paths = [Path(one) for one in files]
    for package in sorted(packages):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            paths += Path(folder).rglob("*.py")
    return tuple(one.read_text(encoding="utf-8", errors="replace") for one in paths)
