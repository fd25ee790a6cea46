"""Run record: run.json, the state of a run after its last attempt."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, get_args

from pv_judge.files import load_json, write_atomically
from pv_rl.errors import DataError
from pv_runs.hydra_record import read_attempt, read_config
from pv_runs.run_folder import RunFolder

__all__ = ["Record", "State", "next_record", "read_about", "read_record", "shown", "write_record"]

ATTEMPT = re.compile(r"attempt-(\d{1,4})\.yaml")
SECRET = re.compile(r".*(?:api_?key|secret|password|token)", re.IGNORECASE)
LARGEST = 2**20
"""Bytes of a run.json."""
State = Literal["running", "finished", "stopped", "failed"]


@dataclass(frozen=True, kw_only=True)
class Record:
    """The state of a run after its last attempt."""

    state: State
    """`stopped` was asked for, and has a checkpoint; a run that was killed still says `running`."""
    attempts: int
    """1 or more; each resume is another one, a start of verl without pv-rl train that a resume found included."""
    exit_code: int | None = None
    """verl's, of the last attempt; None while it runs."""
    started: str = ""
    """Of the last attempt, ISO 8601 in UTC."""
    ended: str | None = None
    error: str | None = None
    """The end of verl's log, where it failed."""
    versions: dict[str, str] | None = None
    """Of the packages that decide what a run does."""
    cwd: str = ""
    """Where the run was started: relative paths of its config are from there."""
    overrides: tuple[str, ...] = ()
    """What resumes have changed of the config, in order."""
    id: str = ""
    """Tells the run from all others, for loggers that keep runs of many folders."""
    history: tuple[dict[str, Any], ...] = ()
    """An entry for each attempt, see `pv_runs.train.provenance`; none for one that failed before it, or that
    `pv-rl train` did not start."""

    def ending(
        self, state: State, exit_code: int | None, error: str | None = None, last_step: int | None = None
    ) -> Record:
        """This attempt, over. `last_step`: the last step that it logged."""
        history = self.history
        if history and history[-1]["attempt"] == self.attempts:
            history = (*history[:-1], {**history[-1], "state": state, "ended": now(), "last_step": last_step})
        return replace(self, state=state, exit_code=exit_code, ended=now(), error=error, history=history)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Of the packages that are installed; of verl the version that is imported, such as a checkout on PYTHONPATH."""
    found = {}
    for package in ("pv-rl", "verl", "torch", "transformers", "vllm", "ray", "trl"):
        try:
            found[package.replace("-", "_")] = version(package)
        except PackageNotFoundError:
            continue
    imported = getattr(sys.modules.get("verl"), "__version__", None)
    return {**found, "verl": str(imported)} if imported else found


def write_record(folder: Path, record: Record) -> None:
    text = json.dumps(asdict(record), indent=1) + "\n"
    write_atomically(RunFolder(folder).record, lambda temporary: temporary.write_text(text))


def read_record(folder: Path) -> Record:
    """The record of a run.

    Raises:
        DataError: there is none, or it is not one.
    """
    path = RunFolder(folder).record
    try:
        said = load_json(path.read_text())
        if not isinstance(said, dict):
            raise ValueError(f"a JSON {type(said).__name__}")
        _check(said)
        lists = {name: tuple(said.get(name, ())) for name in ("overrides", "history")}
        return Record(**{**said, **lists})
    except FileNotFoundError as error:
        raise DataError(f"{folder} contains no run of pv-rl train: it has no {path.name}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{path} is not what pv-rl train writes: {error}. Restore the file, or start a new run from the last "
            f"checkpoint: trainer.resume_mode=resume_path trainer.resume_from_path={RunFolder(folder).checkpoints}/..."
        ) from error


def _check(said: dict[str, Any]) -> None:
    """Refuse what a resume would stumble over, in a file that somebody may have edited."""
    attempts, overrides, history = said["attempts"], said.get("overrides", []), said.get("history", [])
    if type(attempts) is not int or attempts < 0 or said["state"] not in get_args(State):
        raise ValueError(f"attempts {attempts!r}, state {said['state']!r}")
    if not isinstance(overrides, list) or not all(isinstance(one, str) for one in overrides):
        raise ValueError(f"overrides {overrides!r} is no list of texts")
    if not isinstance(history, list) or not all(
        isinstance(one, dict)
        and type(one.get("attempt")) is int
        and isinstance(one.get("overrides") or [], list)
        for one in history
    ):
        raise ValueError("its history is no list of objects with an attempt and a list of overrides")


def next_record(record: Record | None, extra: tuple[str, ...] = (), logged: int = 0) -> Record:
    """That of the attempt after `record`'s, which keeps where the run was started and what was overridden since.

    Args:
        record: of the last attempt; None for the first.
        extra: overrides of this attempt.
        logged: number of the last metrics file, which a start of verl without pv-rl train may have written.
    """
    before = record or Record(state="running", attempts=0)
    return Record(
        state="running",
        attempts=max(before.attempts, logged) + 1,
        started=now(),
        versions=versions(),
        cwd=before.cwd or os.getcwd(),
        overrides=(*before.overrides, *extra),
        id=before.id or secrets.token_hex(4),
        history=before.history,
    )


def read_about(path: Path) -> dict[str, Any]:
    """What a run.json says; without one, the `history` that the configs of the attempts beside it show.

    Raises:
        DataError: it is no JSON object.
    """
    if not path.is_file():
        history = _history_of_configs(path.parent)
        return {"history": history} if history else {}
    with path.open("rb") as file:
        text = file.read(LARGEST + 1)
    try:
        about = load_json(text)
    except ValueError as error:
        raise DataError(
            f"{path} is not JSON ({error}). The state of the run is unknown. Remove the file, or move the run "
            "out of the folder"
        ) from error
    if not isinstance(about, dict):
        raise DataError(
            f"{path} is a JSON {type(about).__name__}; `pv-rl train` writes an object with a state"
        )
    return about


def shown(key: str, value: str | None) -> str:
    """A value of a change, cut to 200 characters; a secret is hidden."""
    if value is None:
        return "none"
    return "hidden" if SECRET.fullmatch(key) and value != "null" else value[:200]


def _history_of_configs(folder: Path) -> list[dict[str, Any]]:
    """An entry for each attempt whose config can be read, with what changed since the one before. No steps."""
    found = RunFolder(folder).config.parent.glob("attempt-*.yaml")
    numbers = {int(match[1]) for one in found if (match := ATTEMPT.fullmatch(one.name))}
    if max(numbers, default=1) < 2:
        return []
    history, before = [], None
    for number in sorted({0, *numbers}):
        try:
            values = read_attempt(folder, number) if number else read_config(folder)
        except (OSError, DataError):
            continue
        values.pop("run_dir", None)
        changed = {
            key: [shown(key, before.get(key)), shown(key, values.get(key))]
            for key in (before or {}) | values
            if before is not None and before.get(key) != values.get(key)
        }
        before = values
        if number:
            history.append({"attempt": number, "changed": changed})
    return history
