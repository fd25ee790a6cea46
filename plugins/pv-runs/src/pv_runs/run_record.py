"""Run record: run.json, the state of a run after its last attempt."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, get_args

from pv_judge.files import write_atomically
from pv_rl.errors import DataError
from pv_runs.run_folder import RunFolder

__all__ = ["Record", "State", "next_record", "read_about", "read_record", "write_record"]

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
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Of the packages that are installed."""
    found = {}
    for package in ("pv-rl", "verl", "torch", "transformers", "vllm", "ray"):
        try:
            found[package.replace("-", "_")] = version(package)
        except PackageNotFoundError:
            continue
    return found


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
        said = json.loads(path.read_text())
        lists = {name: tuple(said.get(name, ())) for name in ("overrides", "history")}
        record = Record(**{**said, **lists})
        if any(not isinstance(entry, dict) or "attempt" not in entry for entry in record.history):
            raise ValueError("an entry of its history is no object with an attempt")
        if not isinstance(record.attempts, int) or record.state not in get_args(State):
            raise ValueError(f"attempts {record.attempts!r}, state {record.state!r}")
        return record
    except FileNotFoundError as error:
        raise DataError(f"{folder} contains no run of pv-rl train: it has no {path.name}") from error
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is not what pv-rl train writes: {error}") from error


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
    """What a run.json says; empty without one.

    Raises:
        DataError: it is no JSON object.
    """
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        text = file.read(LARGEST + 1)
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path} is not JSON ({error}). The state of the run is unknown. Remove the file, or move the run "
            "out of the folder"
        ) from error
    if not isinstance(about, dict):
        raise DataError(
            f"{path} is a JSON {type(about).__name__}; `pv-rl train` writes an object with a state"
        )
    return about
