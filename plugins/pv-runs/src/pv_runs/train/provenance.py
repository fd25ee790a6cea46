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
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from pv_judge.files import write_atomically
from pv_rl.errors import PvRlError
from pv_runs.hydra_record import parse_config, saved_config
from pv_runs.in_force import CONTENT, VERSION, is_setting
from pv_runs.metrics_log import Log, read_log
from pv_runs.preflight.checkpoint import checkpoint_to_load
from pv_runs.run_folder import RunFolder
from pv_runs.run_record import Record, shown
from pv_runs.train.fingerprints import fingerprints
from pv_runs.train.progress import say

__all__ = ["add_provenance"]

SHOWN = 8
"""Changes that the terminal lists."""


def add_provenance(folder: Path, config: DictConfig, record: Record, console: Console) -> Record:
    """The record with an entry for the attempt that begins; prints what differs from the attempt before.

    Args:
        folder: of the run.
        config: composed, with what resumes have changed; data and model are there.
        record: of this attempt.
        console: for the changes.
    """
    text = OmegaConf.to_yaml(config)
    values = parse_config(text)
    before = record.history[-1] if record.history else None
    _, first_step = checkpoint_to_load(config, Path(record.cwd))
    files = dict(fingerprints(config, Path(record.cwd)))
    old = _before(folder, record, before)
    new = {**values, **(_inputs(files, record.versions) if before else {})}
    changed = {
        key: [shown(key, old.get(key)), shown(key, new.get(key))]
        for key in ({**old, **new} if old else {})
        if old.get(key) != new.get(key)
        and key != "run_dir"
        # A path that comes or goes is a change of the config.
        and (not key.startswith(CONTENT) or (key in old and key in new))
    }
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not old and record.attempts > 1:
        changed = {"config": ["unreadable", digest[:16]]}  # nobody knows what has changed
    settings = [key for key in changed if is_setting(key, values)]
    entry = {
        "attempt": record.attempts,
        "started": record.started,
        "ended": None,
        "state": "running",
        "first_step": first_step,
        "last_step": None,
        "overrides": list(record.overrides[_count(record.history) :]),
        "config": digest,
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


def _before(folder: Path, record: Record, before: Mapping[str, Any] | None) -> dict[str, str]:
    """What the last attempt started with; empty for the first one, and where that cannot be read."""
    if before is None and record.attempts == 1:
        return {}
    try:
        if before is not None:
            values = parse_config(RunFolder(folder).attempt_config(before["attempt"]).read_text())
        else:  # a run of an earlier version
            saved = saved_config(folder, ())
            saved.run_dir = str(folder)
            values = parse_config(OmegaConf.to_yaml(saved))
    except (OSError, ValueError, PvRlError):
        return {}
    return {**values, **(_inputs(before.get("files"), before.get("versions")) if before else {})}


def _inputs(files: object, versions: object) -> dict[str, str]:
    named = [(what, one) for what, one in ((CONTENT, files), (VERSION, versions)) if isinstance(one, dict)]
    return {f"{what}{key}": str(value) for what, values in named for key, value in values.items()}


def _count(history: tuple[dict[str, Any], ...]) -> int:
    return sum(len(entry.get("overrides") or ()) for entry in history)


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
