"""Run folder: where each file of a run is, which folders are runs, and the lock of a run.

| in the folder | what |
|---|---|
| run.json | state and attempts of the run (`pv_runs.run_record`) |
| run.lock | held by the process that trains |
| .hydra/config.yaml, .hydra/overrides.yaml | what Hydra composed (`pv_runs.hydra_record`) |
| .hydra/attempt-1.yaml, ... | the config of each attempt, what resumes have changed included |
| tensorboard/, wandb/, mlflow.db, mlflow/, swanlog/ | of those loggers (`pv_runs.train.loggers`) |
| command.sh, verl.log | the command that starts verl, and what verl prints |
| metrics.jsonl, metrics-2.jsonl, ... | numbers of each attempt (`pv_runs.metrics_log`) |
| rollouts/STEP.jsonl | `trainer.rollout_data_dir` |
| sentinel.jsonl | alarms |
| checkpoints/ | `trainer.default_local_dir`: global_step_STEP/, the stop file (`pv_rl.stop_file`) |
| checkpoints/judge/ | the judge's ledger/ and spent.json |

A sweep is a folder of such folders.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pv_judge.pages.text import natural
from pv_rl.errors import ConfigError, DataError, SetupError

__all__ = ["RunFolder", "check_unused", "find_runs", "locked", "run_folders"]

RECORD = "run.json"
CONFIGS = (".hydra", "hydra/.hydra")
"""Where Hydra's record of a run may be: `pv-rl train` has the first, `pv-rl quickstart` the second."""
MARKS = ("metrics.jsonl", RECORD, *(f"{config}/config.yaml" for config in CONFIGS))
"""A folder with one of these files is a run."""
DEPTH = 3
"""Folders below the given one, down to which runs are looked for."""


@dataclass(frozen=True)
class RunFolder:
    """Paths of a run. The files need not be there."""

    path: Path

    @property
    def record(self) -> Path:
        return self.path / RECORD

    @property
    def lock(self) -> Path:
        return self.path / "run.lock"

    @property
    def config(self) -> Path:
        """The composed config of `pv-rl train`."""
        return self.path / CONFIGS[0] / "config.yaml"

    @property
    def overrides(self) -> Path:
        return self.config.with_name("overrides.yaml")

    def attempt_config(self, attempt: int) -> Path:
        """The config that an attempt, from 1, was started with, what resumes have changed included."""
        return self.config.with_name(f"attempt-{attempt}.yaml")

    @property
    def command(self) -> Path:
        return self.path / "command.sh"

    @property
    def log(self) -> Path:
        """verl's output."""
        return self.path / "verl.log"

    @property
    def rollouts(self) -> Path:
        return self.path / "rollouts"

    @property
    def sentinel(self) -> Path:
        return self.path / "sentinel.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def ledger(self) -> Path:
        return self.checkpoints / "judge" / "ledger"

    def metrics(self, attempt: int) -> Path:
        """verl's file logger starts its file anew, so that each attempt, from 1, has a file."""
        return self.path / ("metrics.jsonl" if attempt == 1 else f"metrics-{attempt}.jsonl")

    def of_hydra(self, name: str) -> tuple[Path, ...]:
        """Where a file that Hydra saved may be: `config.yaml` or `overrides.yaml`."""
        return tuple(self.path / config / name for config in CONFIGS)


def find_runs(folder: Path) -> list[Path]:
    """The folder itself if it is a run, else all runs below it, in natural order; each once, whatever links there are.

    A run is a folder with one of `MARKS` in it. What is below a run is not looked at, nor are hidden folders.

    Raises:
        DataError: the folder is none, or there is no run.
    """
    if not folder.is_dir():
        raise DataError(
            f"{folder} is not a folder. Give the folder of a sweep (with multirun.yaml in it) or of a run"
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


def run_folders(folder: Path) -> list[Path]:
    """The folder itself, or the folders in it, that hold a run; in the order of a sweep's jobs."""
    if RunFolder(folder).record.is_file():
        return [folder.resolve()]
    found = (path.parent.resolve() for path in folder.glob(f"*/{RECORD}"))
    return sorted(found, key=lambda path: (len(path.name), path.name))


def check_unused(folder: Path) -> None:
    """Refuse a folder that holds a run or a sweep.

    Raises:
        ConfigError: it does.
    """
    if run_folders(folder):
        raise ConfigError(
            f"{folder} already contains a run. Resume it (pv-rl train --resume {folder}; if it is finished, add "
            "trainer.total_training_steps=NUMBER to train more steps), or choose another folder"
        )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold a run's lock; who inherits the descriptor that is yielded holds it too, until it ends.

    Raises:
        SetupError: somebody else holds it.
    """
    with RunFolder(folder).lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(
                f"{folder} is running: another pv-rl train, or the verl that it started, holds {file.name}. Press "
                "Ctrl-C there, or touch pv_rl_stop in its folder of checkpoints, to stop it"
            ) from error
        yield file.fileno()
