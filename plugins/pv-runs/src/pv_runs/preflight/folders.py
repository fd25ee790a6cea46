"""Folders that the run writes: whether files can be made there, and whether the checkpoints fit on the disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from pv_rl.errors import PvRlError
from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_runs.model_shape import DTYPE_BYTES, read_model
from pv_runs.preflight.findings import note, right, wrong
from pv_runs.preflight.machine import RAY_INIT, Machine, ray_folder
from pv_runs.preflight.secrets import loggers
from pv_runs.typed_config import Settings

__all__ = ["check_folders"]

CHECKPOINTS = "trainer.default_local_dir"
FOLDERS = ("run_dir", CHECKPOINTS, "trainer.rollout_data_dir", "trainer.validation_data_dir")
FILES = ("sentinel.file",)
OF_REWARD = ("ledger", "cache")
"""Options of a judge that name a folder or a file."""
OF_LOGGERS = {"tensorboard": "TENSORBOARD_DIR", "wandb": "WANDB_DIR", "swanlab": "SWANLAB_LOG_DIR"}
"""Variables that name a logger's folder, which is the run's without them."""
VALUES = {"model": 1, "optimizer": 2}
"""Values of a parameter in a checkpoint, in the dtype of the weights: itself, two moments of Adam."""
RAY = "Ray's folder"
SOCKET = 107 - len("/session_2026-11-29_21-21-24_697123_1234567/sockets/plasma_store")
"""Characters of Ray's folder: a Unix socket has a name of up to 107."""
LITTLE = 2 * 2**30
"""Bytes of free disk below which a run is warned about."""


def check_folders(config: DictConfig, machine: Machine, runs: int = 1) -> Iterator[Finding]:
    """Try to make a file in each folder that the run writes, and compare the disk with the checkpoints.

    Args:
        config: composed.
        machine: where the run starts.
        runs: of the sweep, which keep their checkpoints side by side.
    """
    faults, places = [], dict(_places(config, machine))
    if not machine.cwd.is_dir():
        text = (
            f"the run was started in {machine.cwd}, from which its relative paths are, and which is not there"
        )
        faults.append(wrong(text, "make the folder again, or correct cwd in run.json"))
    refused: dict[Path, list[str]] = {}
    for key, place in places.items():
        refused.setdefault(next(one for one in (place, *place.parents) if os.path.lexists(one)), []).append(
            key
        )
    for there, keys in refused.items():
        if error := _unwritable(there):
            text = f"{', '.join(keys)}: cannot write to {places[keys[0]]} ({there}: {error})"
            faults.append(wrong(text, f"choose another {keys[0]}"))
    sockets = str(places.get(RAY, ""))
    if len(sockets) > SOCKET:
        text = f"{RAY} is {sockets}, {len(sockets)} characters; the names of its sockets there allow {SOCKET}"
        faults.append(wrong(text, f"set RAY_TMPDIR or {RAY_INIT}._temp_dir to a shorter one, such as /tmp/r"))
    if not value(config, CHECKPOINTS):
        faults.append(wrong(f"{CHECKPOINTS} is empty", "set it to the folder of the checkpoints"))
    yield from faults or [right(f"{len(places)} folders can be written to")]
    if not faults and CHECKPOINTS in places:
        yield from _space(config, places[CHECKPOINTS], runs)


def _places(config: DictConfig, machine: Machine) -> Iterator[tuple[str, Path]]:
    """The folders by the setting that names each."""

    def local(name: object) -> Path | None:
        known = isinstance(name, str) and name and "://" not in name
        return Path(os.path.abspath(machine.cwd / Path(str(name)).expanduser())) if known else None

    for key in FOLDERS:
        if path := local(value(config, key)):
            yield key, path
    for key in FILES:
        if path := local(value(config, key)):
            yield key, path.parent
    options = OmegaConf.select(config, "reward.custom_reward_function.reward_kwargs")
    for key, name in _of_reward(OmegaConf.to_container(options, resolve=True) if options else {}):
        if path := local(name):
            yield key, path if key.endswith("ledger") else path.parent
    for logger, name in OF_LOGGERS.items():
        if logger in loggers(config) and (path := local(machine.environment.get(name))):
            yield name, path
    if not machine.cluster and (path := local(str(ray_folder(config, machine.environment)))):
        yield RAY, path


def _of_reward(tree: object, path: str = "reward_kwargs") -> Iterator[tuple[str, object]]:
    if isinstance(tree, Mapping):
        for key, below in tree.items():
            here = f"{path}.{key}"
            if key in OF_REWARD:
                yield here, below
            else:
                yield from _of_reward(below, here)


def _unwritable(folder: Path) -> str:
    """Why no file can be made in a folder; empty if one was made, and removed."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or type(error).__name__


def _space(config: DictConfig, folder: Path, runs: int) -> Iterator[Finding]:
    there = next(one for one in (folder, *folder.parents) if one.is_dir())
    free = shutil.disk_usage(there).free
    one, count = _checkpoint(config), _kept(config)
    if not one:
        text = f"{free / 1e9:,.1f} GB free at {there}; the size of a checkpoint is not known"
        yield note(text, "free some space") if free < LITTLE else right(text)
        return
    old = sum(file.stat().st_size for file in folder.glob("global_step_*/**/*") if file.is_file())
    needed = one * max(count, 1) * runs
    said = f"{runs} x " if runs > 1 else ""
    text = f"checkpoints take {said}{max(count, 1)} x {one / 1e9:,.1f} GB, and {there} has {free / 1e9:,.1f} GB free"
    if needed > free + old:
        yield wrong(
            text, f"free some space, choose another {CHECKPOINTS}, or set trainer.max_actor_ckpt_to_keep=1"
        )
    else:
        yield right(text)


def _checkpoint(config: DictConfig) -> float:
    """Bytes of one checkpoint; 0 where the model's shape is not known."""
    try:
        parameters = read_model(Settings(config=config))[0].parameters
    except PvRlError:
        return 0
    contents: object = value(config, "actor_rollout_ref.actor.checkpoint.save_contents")
    saved = [str(one) for one in contents or ()]  # pyright: ignore[reportGeneralTypeIssues]
    each = DTYPE_BYTES.get(str(value(config, "actor_rollout_ref.actor.fsdp_config.model_dtype")), 4)
    half = 2 * ("hf_model" in saved)
    return parameters * (half + each * sum(VALUES.get(one, 0) for one in saved))


def _kept(config: DictConfig) -> int:
    """Checkpoints at the end of the run; 0 if it saves none of its own accord."""
    every, steps = value(config, "trainer.save_freq"), value(config, "trainer.total_training_steps")
    if not isinstance(every, int) or every <= 0:
        return 0
    most = value(config, "trainer.max_actor_ckpt_to_keep")
    made = -(-steps // every) if isinstance(steps, int) else 1
    return min(made, most) if isinstance(most, int) and most > 0 else made
