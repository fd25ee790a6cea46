"""Which folders below a folder are runs."""

from __future__ import annotations

import os
from pathlib import Path

from pv_judge.pages.text import natural
from pv_rl.errors import DataError

__all__ = ["CONFIGS", "find_runs"]

DEPTH = 3
"""Folders below the given one, down to which runs are looked for."""
CONFIGS = (".hydra", "hydra/.hydra")
"""Where Hydra's record of a run may be: `pv-rl train` has the first, `pv-rl quickstart` the second."""
MARKS = ("metrics.jsonl", "run.json", *(f"{config}/config.yaml" for config in CONFIGS))


def find_runs(folder: Path) -> list[Path]:
    """The folder itself if it is a run, else all runs below it, in natural order; each once, whatever links there are.

    A run is a folder with one of `MARKS` in it. What is below a run is not looked at, nor are hidden folders.

    Raises:
        DataError: the folder is none, or there is no run.
    """
    if not folder.is_dir():
        raise DataError(
            f"{folder} is no folder; give the folder of a sweep (with multirun.yaml in it) or of a run"
        )
    found = _look(folder, DEPTH, set())
    if not found:
        raise DataError(
            f"{folder} has no run in it or in its folders, down to {DEPTH} levels. Looked for: {', '.join(MARKS)}. "
            "Give the folder that `pv-rl train` wrote to; a job that has not started has none of them"
        )
    return found


def _look(folder: Path, depth: int, seen: set[tuple[int, int]]) -> list[Path]:
    state = folder.stat()
    if (state.st_dev, state.st_ino) in seen:  # by another link, or in a loop of links
        return []
    seen.add((state.st_dev, state.st_ino))
    if any((folder / mark).is_file() for mark in MARKS):
        return [folder]
    if not depth:
        return []
    with os.scandir(folder) as entries:
        below = [entry for entry in entries if not entry.name.startswith(".") and os.path.isdir(entry.path)]
    below.sort(
        key=lambda entry: (entry.is_symlink(), natural(entry.name))
    )  # the name of a run is not a link's
    found = [run for entry in below for run in _look(Path(entry.path), depth - 1, seen)]
    return sorted(found, key=lambda run: natural(str(run.relative_to(folder))))
