"""Run plan of a lab: the runs to train, and the state of those that exist."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from omegaconf import DictConfig, OmegaConf

from pv_judge.files import write_atomically
from pv_judge.pages.text import plain
from pv_lab.runs.settings import LabSettings
from pv_rl.errors import ConfigError
from pv_runs.hydra_record import flatten, saved_config
from pv_runs.recipes import compose
from pv_runs.run_folder import RunFolder, run_folders
from pv_runs.run_record import read_record

__all__ = ["MODE", "LabRun", "check_folder", "compose_run", "plan_runs", "save_config"]

MODE = "actor_rollout_ref.actor.loss_agg_mode"
OF_EACH = (MODE, "seed", "trainer.experiment_name")
"""Keys in which the runs of a lab differ."""
SHOWN = 5
"""Keys that an error lists."""


@dataclass(frozen=True, kw_only=True)
class LabRun:
    """One run: a weighting and a seed."""

    mode: str
    seed: int
    folder: Path

    @property
    def state(self) -> Literal["new", "running", "finished", "stopped", "failed"]:
        """As its run.json says; `new` without one. `running` may be one that was killed."""
        return read_record(self.folder).state if RunFolder(self.folder).record.is_file() else "new"

    @property
    def overrides(self) -> tuple[str, ...]:
        """In which it differs from the others."""
        return (f"{MODE}={self.mode}", f"seed={self.seed}", f"trainer.experiment_name=lab-{self.folder.name}")


def plan_runs(settings: LabSettings) -> list[LabRun]:
    """All runs, seed by seed, so that a lab which is stopped has all weightings of the seeds that it got to."""
    out = settings.out.resolve()
    return [
        LabRun(mode=mode, seed=seed, folder=out / f"{re.sub('[:@]', '-', mode)}-seed-{seed}")
        for seed in range(settings.first_seed, settings.first_seed + settings.seeds)
        for mode in settings.specs
    ]


def compose_run(settings: LabSettings, run: LabRun) -> DictConfig:
    """The config of a run.

    Raises:
        ConfigError: an override that Hydra does not take, or a group or an option that does not exist.
    """
    return copy.deepcopy(_compose((*settings.all_overrides, *run.overrides)))


@lru_cache(maxsize=64)
def _compose(overrides: tuple[str, ...]) -> DictConfig:
    """Once: a lab composes what it checks before anything starts, and again what it starts."""
    return compose("lab", overrides)


def save_config(settings: LabSettings, run: LabRun, config: DictConfig) -> None:
    """Write the record that `pv-rl train` has from Hydra: verl starts from it, and reports read it."""
    paths = RunFolder(run.folder)
    paths.config.parent.mkdir(parents=True, exist_ok=True)
    overrides = OmegaConf.to_yaml(OmegaConf.create([*settings.all_overrides, *run.overrides]))
    text = OmegaConf.to_yaml(config)
    write_atomically(paths.overrides, lambda path: path.write_text(overrides))
    write_atomically(paths.config, lambda path: path.write_text(text))


def check_folder(settings: LabSettings, config: DictConfig) -> None:
    """Refuse a folder with runs that cannot be compared with these: all have to differ in weighting and seed only.

    Args:
        settings: whose `out` is looked at; runs of other weightings and seeds may be in it.
        config: of any of the runs.

    Raises:
        ConfigError: it holds such a run, is a run itself or no folder; the text names what differs.
    """
    out = settings.out
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out} is a file; name a folder")
    if RunFolder(out).record.exists():
        raise ConfigError(f"--out {out} is the folder of one run; name a folder for all runs")
    now = _comparable(OmegaConf.create(OmegaConf.to_yaml(config)))  # as it would be read again
    for folder in run_folders(out):
        before = _comparable(saved_config(folder, read_record(folder).overrides))
        differ = [key for key in dict.fromkeys([*now, *before]) if now.get(key) != before.get(key)]
        if differ:
            said = [f"{key} is {_say(before, key)} there and {_say(now, key)} here" for key in differ[:SHOWN]]
            more = f" and {len(differ) - SHOWN} keys more" if len(differ) > SHOWN else ""
            raise ConfigError(
                f"--out {out} holds runs of other settings, {folder.name} for example: {'; '.join(said)}{more}. Runs "
                "that are put side by side may differ in weighting and seed only: name another --out, or give the "
                "settings that are there"
            )


def _comparable(config: Any) -> dict[str, str]:
    return {
        key: value
        for key, value in flatten(OmegaConf.to_container(config, resolve=False))
        if key not in OF_EACH
    }


def _say(config: Mapping[str, str], key: str) -> str:
    return plain(config[key], 60) if key in config else "not set"
