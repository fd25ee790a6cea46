"""Provenance of an attempt: the config, files and packages it starts with, and what changed since the last attempt.

An entry of `history` in run.json:

| key | what |
|---|---|
| attempt, started, ended, state | of the attempt |
| first_step, last_step | the step after the checkpoint that it starts from, null if unknown; the last one logged |
| overrides | of this resume alone |
| config | SHA-256 of `.hydra/attempt-N.yaml`, the config that it starts with |
| files | a fingerprint of each file or folder that the config names |
| versions | of packages |
| changed | by key, [before, after]: config keys, `content of KEY`, `version of PACKAGE` |
| logs_as | the attempt whose TensorBoard folder, wandb or SwanLab run it continues; itself if it starts one |
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from pv_judge.files import write_atomically
from pv_rl.errors import ConfigError, PvRlError
from pv_runs.hydra_record import flatten, saved_config
from pv_runs.in_force import CONTENT, VERSION, is_setting
from pv_runs.metrics_log import Log, read_log
from pv_runs.run_folder import RunFolder
from pv_runs.run_record import Record
from pv_runs.train.progress import say

__all__ = ["add_provenance", "fingerprint"]

INPUT = re.compile(r".*(?:\.|_)(?:path|files?)")
OUTPUT = re.compile(
    r".*(?:save_path|resume_from_path|(?:log|output|cache|timeline_json)_file)|sentinel\..*|hydra\..*"
)
SECRET = re.compile(r".*(?:api_?key|secret|password|token)", re.IGNORECASE)
WHOLE = 64 * 2**20
"""Bytes of a file that are hashed whole; of a larger one its size and both ends are."""
MOST_FILES = 1000
SHOWN = 8
"""Changes that the terminal lists."""
CHECKPOINT = re.compile(r"global_step_(\d+)/*$")
RANKS = re.compile(r"model_world_size_(\d+)_rank_\d+\.pt")


def add_provenance(folder: Path, config: DictConfig, record: Record, console: Console) -> Record:
    """The record with an entry for the attempt that begins; prints what differs from the attempt before.

    Args:
        folder: of the run.
        config: composed, with what resumes have changed; data and model are there.
        record: of this attempt.
        console: for the changes.

    Raises:
        ConfigError: the checkpoint was written by another number of ranks, which verl's FSDP cannot load.
    """
    text = OmegaConf.to_yaml(config)
    values = dict(flatten(yaml.safe_load(text)))
    before = record.history[-1] if record.history else None
    checkpoint, first_step = _checkpoint(config, Path(record.cwd))
    _check_ranks(config, checkpoint)
    files = dict(_fingerprints(config, Path(record.cwd)))
    old = _before(folder, record, before)
    new = {**values, **(_inputs(files, record.versions) if before else {})}
    changed = {
        key: [_shown(key, old.get(key)), _shown(key, new.get(key))]
        for key in ({**old, **new} if old else {})
        if old.get(key) != new.get(key) and not key.startswith("run_dir")
    }
    settings = [key for key in changed if is_setting(key, values)]
    entry = {
        "attempt": record.attempts,
        "started": record.started,
        "ended": None,
        "state": "running",
        "first_step": first_step,
        "last_step": None,
        "overrides": list(record.overrides[_count(record.history) :]),
        "config": hashlib.sha256(text.encode()).hexdigest(),
        "files": files,
        "versions": record.versions,
        "changed": changed,
        "logs_as": record.attempts,
    }
    log = _read_log(folder)
    if before is not None and not settings and _seamless(log, record, first_step):
        entry["logs_as"] = before.get("logs_as", record.attempts)
    if changed:
        trained = any(start < (first_step or 0) for start in log.starts.values())
        _tell(console, folder, entry, settings if trained else [])
    write_atomically(RunFolder(folder).attempt_config(record.attempts), lambda path: path.write_text(text))
    return replace(record, history=(*record.history, entry))


def fingerprint(path: Path) -> str:
    """16 hex digits of the SHA-256 of a file's content, or of the names and contents of a folder's files.

    Of a file above 64 MiB: of its size and of the first and the last 32 MiB.

    Raises:
        OSError: it cannot be read.
    """
    whole = hashlib.sha256()
    if path.is_dir():
        inside = sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith("."))
        for one in inside[:MOST_FILES]:
            whole.update(f"{one.relative_to(path)} {fingerprint(one)}\n".encode())
        return whole.hexdigest()[:16]
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        whole.update(b"%d " % size)
        whole.update(file.read(WHOLE if size <= WHOLE else WHOLE // 2))
        if size > WHOLE:
            file.seek(size - WHOLE // 2)
            whole.update(file.read(WHOLE // 2))
    return whole.hexdigest()[:16]


def _fingerprints(config: DictConfig, cwd: Path) -> Iterator[tuple[str, str]]:
    """By config key, of what is on this machine: data, model, code and prompts; not the names of a hub."""
    for key, value in flatten(OmegaConf.to_container(config)):
        if not INPUT.fullmatch(key) or OUTPUT.fullmatch(key) or value == "null":
            continue
        try:
            given = OmegaConf.select(config, key)
            names = [given] if isinstance(given, str) else list(given or ())
            found = [cwd / Path(str(name)).expanduser() for name in names]
            prints = [fingerprint(path) for path in found if path.is_file() or path.is_dir()]
        except (
            OSError,
            ValueError,
            TypeError,
            RuntimeError,
            OmegaConfBaseException,
        ):  # no readable path
            continue
        if prints:
            yield key, " ".join(prints)


def _before(folder: Path, record: Record, before: Mapping[str, Any] | None) -> dict[str, str]:
    """What the last attempt started with; empty for the first one."""
    if before is None and record.attempts == 1:
        return {}
    try:
        path = RunFolder(folder).attempt_config(before["attempt"] if before else 0)
        if path.is_file():
            values = dict(flatten(yaml.safe_load(path.read_text())))
        else:  # a run of an earlier version
            saved = saved_config(folder, ())
            saved.run_dir = str(folder)
            values = dict(flatten(yaml.safe_load(OmegaConf.to_yaml(saved))))
    except (OSError, ValueError, yaml.YAMLError, PvRlError):
        return {}
    return {**values, **(_inputs(before.get("files"), before.get("versions")) if before else {})}


def _inputs(files: Mapping[str, str] | None, versions: Mapping[str, str] | None) -> dict[str, str]:
    named = ((CONTENT, files), (VERSION, versions))
    return {f"{what}{key}": str(value) for what, values in named for key, value in (values or {}).items()}


def _shown(key: str, value: str | None) -> str:
    if value is None:
        return "none"
    return "hidden" if SECRET.fullmatch(key) and value != "null" else value[:200]


def _count(history: tuple[dict[str, Any], ...]) -> int:
    return sum(len(entry.get("overrides") or ()) for entry in history)


def _checkpoint(config: DictConfig, cwd: Path) -> tuple[Path | None, int | None]:
    """The checkpoint that verl will load, and the first step after it."""
    trainer = config.trainer
    mode = trainer.get("resume_mode", "auto")
    if mode == "disable":
        return None, 1
    if mode == "resume_path":
        match = CHECKPOINT.search(str(trainer.get("resume_from_path")))
        return (cwd / str(trainer.resume_from_path), int(match[1]) + 1) if match else (None, None)
    checkpoints = cwd / trainer.default_local_dir
    try:
        step = int((checkpoints / "latest_checkpointed_iteration.txt").read_text())
    except FileNotFoundError:
        return None, 1
    except (OSError, ValueError):
        return None, None
    return checkpoints / f"global_step_{step}", step + 1


def _check_ranks(config: DictConfig, checkpoint: Path | None) -> None:
    """verl's FSDP loads a checkpoint on as many ranks as wrote it (utils/checkpoint/fsdp_checkpoint_manager.py:213)."""
    if checkpoint is None or not (checkpoint / "actor").is_dir():
        return
    wrote = {
        int(match[1]) for one in (checkpoint / "actor").iterdir() if (match := RANKS.fullmatch(one.name))
    }
    ranks = config.trainer.get("nnodes", 1) * config.trainer.get("n_gpus_per_node", 1)
    if wrote and ranks not in wrote:
        raise ConfigError(
            f"{checkpoint} was written by {max(wrote)} ranks; trainer.nnodes * trainer.n_gpus_per_node is {ranks}. "
            f"verl's FSDP loads a checkpoint on as many ranks as wrote it: resume on {max(wrote)}, or merge it "
            "(python -m verl.model_merger) and start a new run from the merged model"
        )


def _read_log(folder: Path) -> Log:
    """The steps that were logged; none where they cannot be read."""
    try:
        return read_log(folder, lambda key: False)
    except (PvRlError, OSError):
        return Log(series={}, last_step=None, sources=())


def _seamless(log: Log, record: Record, first_step: int | None) -> bool:
    """Whether the attempt trains the step after the last one that was logged, so that no logger sees a step twice."""
    known = {entry["attempt"] for entry in record.history}
    return first_step is not None and log.last_step == first_step - 1 and set(log.starts) <= known


def _tell(console: Console, folder: Path, entry: Mapping[str, Any], settings: list[str]) -> None:
    """Print what changed. `settings`: the keys that earlier steps were trained with another value of."""
    where = "now" if entry["first_step"] is None else f"from step {entry['first_step']}"
    lines = [f"  {key}: {was} before, {now} {where}" for key, (was, now) in entry["changed"].items()]
    more = [f"  and {len(lines) - SHOWN} more, in run.json"] if len(lines) > SHOWN else []
    text = [f"{folder}: attempt {entry['attempt']} differs from the attempt before:", *lines[:SHOWN], *more]
    if settings:
        text.append(
            f"The run is trained under more than one setting ({', '.join(settings[:SHOWN])}): pv-rl report shows it "
            "as a setting of its own, with the steps"
        )
    say(console, "\n".join(text))
