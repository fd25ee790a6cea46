"""Output paths of a run: in its folder, or where its config says."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pv_judge.pages.text import plain
from pv_rl.errors import DataError
from pv_runs.growing_file import open_regular
from pv_runs.hydra_record import look_up
from pv_runs.metrics_log import find_metrics, parse_line
from pv_runs.run_folder import RunFolder, find_runs

__all__ = ["Places", "choose_run", "find_places"]

LOGGER = "env_vars.VERL_FILE_LOGGER_PATH"
LEDGER = "reward.custom_reward_function.reward_kwargs.ledger"
FIRST_LINE = 2**20
"""Bytes of a file's first line, by which a log of verl's is told."""
MOST_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Places:
    """Of one run. What is not there yet may come."""

    folder: Path
    metrics: tuple[Path, ...]
    """In the order of the attempts."""
    rollouts: Path
    """Folder of verl's `trainer.rollout_data_dir`."""
    ledger: Path
    """Folder of the judge's."""
    sentinel: Path


def choose_run(folder: Path) -> Path:
    """The run that a folder is or holds.

    Raises:
        DataError: it holds none, or several.
    """
    try:
        runs = find_runs(folder)
    except DataError as error:
        if folder.is_dir() and _own_logs(folder):  # of verl alone, with nothing else beside it
            return folder
        raise DataError(
            f"{error}. There is: {_contents(folder)}" if folder.is_dir() else str(error)
        ) from error
    if len(runs) > 1:
        names = ", ".join(plain(run.relative_to(folder), 60) for run in runs[:MOST_NAMED])
        more = f" and {len(runs) - MOST_NAMED} more" if len(runs) > MOST_NAMED else ""
        raise DataError(f"{folder} holds {len(runs)} runs; give the folder of one of them: {names}{more}")
    return runs[0]


def find_places(folder: Path, config: Mapping[str, str], about: Mapping[str, Any]) -> Places:
    """What is in the folder counts before what the config says, since a folder may have been copied here.

    Args:
        folder: of the run.
        config: by dotted key, nothing resolved.
        about: what its run.json says.
    """
    said = about.get("cwd")
    start = Path(said) if isinstance(said, str) and os.path.isabs(said) else folder

    def choose(inside: Path, key: str) -> Path:
        named = look_up(config, key)
        known = [inside, *([start / named] if named and named != "null" and "${" not in named else [])]
        return next((path for path in known if path.is_dir()), inside)

    usual = RunFolder(folder)
    logs = find_metrics(folder) or _configured_log(config, start) or _own_logs(folder)
    return Places(
        folder=folder,
        metrics=tuple(logs),
        rollouts=choose(usual.rollouts, "trainer.rollout_data_dir"),
        ledger=choose(usual.ledger, LEDGER),
        sentinel=usual.sentinel,
    )


def _configured_log(config: Mapping[str, str], start: Path) -> list[Path]:
    """Where verl's file logger was told to write by `ray_kwargs.ray_init.runtime_env`."""
    keys = [key for key in config if key.endswith(LOGGER)]
    paths = [start / text for key in keys if (text := look_up(config, key)) and "${" not in text]
    return [path for path in paths if path.is_file()]


def _own_logs(folder: Path) -> list[Path]:
    """verl's log by any other name, `PROJECT/EXPERIMENT.jsonl` by default: the one that was written last."""
    found = []
    for path in _jsonl(folder):
        with contextlib.suppress(OSError, ValueError), open_regular(path) as file:
            parse_line(file.readline(FIRST_LINE))
            found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found)[-1:]]


def _jsonl(folder: Path) -> Iterator[Path]:
    """Of the folder and of those right in it, but for files that hold something else."""
    others = ("rollouts", "checkpoints", "sentinel.jsonl")
    for path in sorted(folder.iterdir())[:1000]:
        if path.name in others or path.name.startswith("."):
            continue
        if path.suffix == ".jsonl":
            yield path
        elif path.is_dir():
            with contextlib.suppress(OSError):
                yield from sorted(path.glob("*.jsonl"))[:20]


def _contents(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    shown = ", ".join(plain(name, 40) for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (shown or "nothing") + more
