"""Hydra's record of a run: the composed config and the overrides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pv_judge.rowfiles.files import check_regular
from pv_judge.yaml_errors import load_settings, yaml_errors
from pv_rl.errors import DataError
from pv_runs.run_folder import RunFolder

if TYPE_CHECKING:
    from omegaconf import DictConfig

__all__ = [
    "flatten",
    "look_up",
    "parse_config",
    "read_attempt",
    "read_config",
    "read_overrides",
    "saved_config",
]

LARGEST = 4 * 2**20
"""Bytes. verl's config has about 30,000."""
DEEPEST = 100
"""Levels. verl's config has eight."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
REFERENCE = re.compile(r"\$\{([\w.@/-]+)\}")


def read_config(run: Path) -> dict[str, str]:
    """Values as they stand in the config, nothing resolved, by dotted key. Empty if there is no config.

    Raises:
        DataError: the file is no YAML mapping, or not one that Hydra wrote.
    """
    found = _load(run, "config.yaml")
    if found is None:
        return {}
    path, tree = found
    if not isinstance(tree, dict):
        raise DataError(f"{path} is a YAML {type(tree).__name__}; Hydra writes a mapping of keys there")
    return dict(flatten(tree))


def read_overrides(run: Path) -> dict[str, str]:
    """By key, `{"recipe.eta": "0.3"}` for `recipe.eta=0.3` and `+recipe.eta=0.3`; a deletion, `~key`, as `removed`.

    Raises:
        DataError: the file is no list of texts.
    """
    found = _load(run, "overrides.yaml")
    if found is None:
        return {}
    path, lines = found
    if lines is None:
        return {}
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise DataError(f"{path} is not a list of overrides such as recipe.eta=0.3, as Hydra writes it")
    overrides = {}
    for line in lines:
        key, _, value = line.partition("=")
        overrides[key.lstrip("+~")] = "removed" if key.startswith("~") else value
    return overrides


def saved_config(run: Path, overrides: Sequence[str]) -> DictConfig:
    """The config that verl starts from, with what resumes have changed of it.

    Args:
        run: its folder.
        overrides: of single values, as in run.json.

    Raises:
        DataError: the file is missing or no config, or an override does not fit.
    """
    from omegaconf import DictConfig, OmegaConf

    path = RunFolder(run).config
    try:
        with yaml_errors():
            config = load_settings(path)
            changed = OmegaConf.merge(config, OmegaConf.from_dotlist([one.lstrip("+") for one in overrides]))
    except FileNotFoundError as error:
        raise DataError(
            f"{path} is missing, so the run cannot be resumed or checked. `pv-rl quickstart` writes none; for a run of "
            "`pv-rl train`, restore the file"
        ) from error
    except (OSError, ValueError) as error:
        said = f" with {' '.join(overrides)}" if overrides else ""
        raise DataError(f"{path}{said} cannot be read: {error}") from error
    if not isinstance(changed, DictConfig):
        raise DataError(f"{path} is not a config; it has to be a mapping of keys, as Hydra writes it")
    return changed


def parse_config(text: str) -> dict[str, str]:
    """Values of a config that OmegaConf has written as YAML, by dotted key.

    Raises:
        ValueError: it is no YAML.
    """
    with yaml_errors():
        return dict(flatten(yaml.load(text, LOADER)))  # noqa: S506 - a SafeLoader


def read_attempt(run: Path, attempt: int) -> dict[str, str]:
    """Values of the config that an attempt started with, by dotted key.

    Raises:
        DataError: the file is no regular file, or not what `pv-rl train` writes.
        OSError: it cannot be read.
    """
    return dict(flatten(_read(RunFolder(run).attempt_config(attempt))))


def look_up(config: Mapping[str, str], key: str) -> str | None:
    """A value with the references in it filled in, `balanced:${recipe.eta}`; None if there is no such key.

    Resolvers, `${oc.env:NAME}` and the like, stay as they are: a report is shown to others, and a config must not put
    this machine's environment into it.
    """
    text = config.get(key)
    for _ in range(10):  # deep enough for a config; a circle of references ends too
        if text is None or not REFERENCE.search(text):
            break
        text = REFERENCE.sub(lambda match: config.get(match[1], match[0]), text)[:1000]
    return text


def _load(run: Path, name: str) -> tuple[Path, Any] | None:
    path = next((file for file in RunFolder(run).of_hydra(name) if file.is_file()), None)
    return None if path is None else (path, _read(path))


def _read(path: Path) -> Any:
    """The YAML of a file of a run, which may come from somebody else."""
    check_regular(path)
    with path.open("rb") as file:
        text = file.read(LARGEST + 1)
    try:
        if len(text) > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        with yaml_errors():
            depth = 0
            for event in yaml.parse(text, LOADER):
                if isinstance(event, yaml.AliasEvent):
                    raise ValueError(
                        "it has YAML aliases, which Hydra never writes and which can stand for very much"
                    )
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
                    event, yaml.CollectionEndEvent
                )
                if depth > DEEPEST:
                    raise ValueError(f"it has more than {DEEPEST} levels")
            return yaml.load(text, LOADER)  # noqa: S506 - a SafeLoader
    except ValueError as error:
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"{path} is not what Hydra writes: {reason}. Restore it, or move the run out of the folder"
        ) from error


def flatten(tree: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Values of a config as text, by dotted key."""
    if isinstance(tree, dict) and tree and depth < 30:
        for key, value in tree.items():
            yield from flatten(value, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    else:
        yield prefix, "null" if tree is None else str(tree)
