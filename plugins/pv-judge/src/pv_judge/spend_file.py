"""Spend file of one run: what its judge has cost, and the highest cost of the requests in flight.

The process overwrites its one record in place, and locks the file while it lives. If the budget has a limit, each
request is in the record before it is sent, so that after a `kill -9` it counts at its highest cost. The file is not
synced, so a power loss may lose the last half minute.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import math
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pv_judge.budget import BudgetKeeper, Spent, Totals
from pv_judge.files import load_json, verified, with_checksum
from pv_rl.errors import DataError, SetupError

__all__ = ["FILE", "SpendFile", "read_spent", "spend_path"]

logger = logging.getLogger("pv_rl")

FILE = "spent.json"
EVERY_S = 1.0
LOCK_S = 15.0
"""Longest wait for the lock of a process that is being killed."""
RECORD = 512
"""Bytes, padded with spaces: within one page, a kill leaves the old record or the new one."""


def read_spent(path: Path) -> Totals | None:
    """What the run of a spend file has spent, requests in flight at their highest cost; None without a file.

    Raises:
        DataError: the file is not a spend file.
    """
    record = _read(path)
    return None if record is None else _totals(record, path, "in_run")


def spend_path(run: Path, number: int, earlier: Path | None) -> Path:
    """The spend file of a run's judge.

    Its name does not depend on the judge's settings, so a run that is resumed with a larger budget keeps its spending.

    Args:
        run: the run's own folder, the same one when it is resumed.
        number: of the judge in the order of the config, from 1.
        earlier: where an older pv-rl kept it. A file there is moved if it is in the run's folder; elsewhere it may
            belong to other runs and is not used.
    """
    path = run / "judge" / (FILE if number == 1 else f"spent-{number}.json")
    old = earlier if earlier is not None and earlier.is_file() and not path.exists() else None
    if old is not None and run.resolve() in old.resolve().parents:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(old, path)
    return path


class SpendFile:
    """Restores what the run has spent, and keeps the file up to date.

    Args:
        folder: of the file; made if it is missing.
        keeper: the budget. If it has a limit, each request is written to the file before it is sent.
        name: of the file.
        start: id of this start of the run. If the file has the same, the spending of the step is restored too.

    Raises:
        DataError: the file is not a spend file.
        SetupError: the file cannot be opened, or another process is using it.
    """

    def __init__(
        self, folder: str | Path, keeper: BudgetKeeper, *, name: str = FILE, start: str = ""
    ) -> None:
        self._path = Path(folder).expanduser() / name
        self._keeper = keeper
        self._start = start
        self._due: asyncio.TimerHandle | None = None
        self._file = -1
        try:
            self._open(LOCK_S)
            self._restore()
            self._write()
            os.truncate(self._file, RECORD)  # what a user wrote may be longer
        except BaseException as error:
            if self._file >= 0:
                os.close(self._file)
            if not isinstance(error, OSError):
                raise
            raise SetupError(
                f"the judge's spend file {self._path} cannot be opened ({error}). Make the file and its folder "
                "writable"
            ) from error
        keeper.book = self._write

    def save(self, *, at_once: bool = False) -> None:
        """Write the file within a second, or `at_once`. An error such as a full disk is only logged."""
        if self._file < 0:
            return
        if not at_once:
            if self._due is None:
                self._due = asyncio.get_running_loop().call_later(EVERY_S, self._save_due)
            return
        try:
            self._write()
        except (OSError, SetupError) as error:
            logger.warning("%s could not be written: %s", self._path, error)

    def close(self) -> None:
        """Save and unlock the file."""
        self.save(at_once=True)
        if self._due is not None:
            self._due.cancel()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _save_due(self) -> None:
        self._due = None
        self.save(at_once=True)

    def _restore(self) -> None:
        record = _read(self._path)
        if record is None:
            return
        spent = Spent(in_run=_totals(record, self._path, "in_run"))
        if self._start and record.get("start") == self._start:  # this process died within a step
            step = record.get("step")
            if type(step) is not int:
                raise _invalid(self._path, ValueError("its step is not a whole number"))
            spent = replace(spent, step=step, in_step=_totals(record, self._path, "in_step"))
        self._keeper.restore(spent)

    def _write(self) -> None:
        if os.fstat(self._file).st_nlink == 0:  # deleted, or folded into the file of a whole run
            self._open(0.0)
        spent = self._keeper.at_most
        record = {
            "step": spent.step,
            "in_step": vars(spent.in_step),
            "in_run": vars(spent.in_run),
            "start": self._start,
            "pid": os.getpid(),
        }
        os.pwrite(self._file, json.dumps(with_checksum(record)).ljust(RECORD - 1).encode() + b"\n", 0)

    def _open(self, patience_s: float) -> None:
        """Open and lock the file at the path, and close the one that was open before."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._lock(file, patience_s)
        except BaseException:
            os.close(file)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file = file

    def _lock(self, file: int, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    pid = (_read(self._path) or {}).get("pid")
                    raise SetupError(
                        f"{self._path} is in use by another process (pid {pid}): two runs cannot share one folder. "
                        "Stop that process, or give this run a folder of its own (trainer.default_local_dir; pv-data: "
                        "run_dir)"
                    ) from None
                time.sleep(0.1)
            except OSError:  # a file system without locks
                return None


def _read(path: Path) -> dict[str, Any] | None:
    """The record; None without a file, and for a new one."""
    for attempt in (1, 2, 3):
        try:
            text = path.read_text()
            record = load_json(text) if text else None
            if record is None:
                return None
            if isinstance(record, dict):
                return verified(record)
            raise ValueError("it is not a mapping")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            if attempt == 3:
                raise _invalid(path, error) from error
            time.sleep(0.01)  # its process was writing it
    return None


def _totals(record: Mapping[str, Any], path: Path, name: str) -> Totals:
    try:
        numbers = {one: record[name][one] for one in ("usd", "calls", "tokens")}
        if not all(isinstance(number, int | float) and 0 <= number < math.inf for number in numbers.values()):
            raise ValueError("expected finite numbers of 0 or more")
    except (ValueError, KeyError, TypeError) as error:
        raise _invalid(path, error) from error
    return Totals(**numbers)


def _invalid(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path} is not a valid spend file ({error}). Restore it, or delete it to restart the budget"
    )
