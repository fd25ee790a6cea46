"""Spend file of one run: what its judge has cost, and what the requests in flight may cost at most.

One record, overwritten in place, and under a lock for as long as its process lives. Where the budget has a limit, each
request is in the record before it is sent, so that after a `kill -9` it counts at its worst. A loss of power may lose
the last half minute: nothing is synced.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pv_rl.errors import DataError, SetupError
from pv_rl.judge.budget import BudgetKeeper, Spent, Totals

__all__ = ["FILE", "Spending", "read_spent", "spend_file"]

logger = logging.getLogger("pv_rl")

FILE = "spent.json"
EVERY_S = 1.0
LOCK_S = 15.0
"""A process that was killed may hold its lock for so long."""
RECORD = 512
"""Bytes, padded with spaces: within one page, a kill leaves the old record or the new one."""


def read_spent(path: Path) -> Totals | None:
    """What a `spent.json` says of its run, requests in flight at their worst; None where there is none.

    Raises:
        DataError: the file is not one that `Spending` wrote.
    """
    said = _read(path)
    return None if said is None else _totals(said, path, "in_run")


def spend_file(run: Path, number: int, earlier: Path | None) -> Path:
    """The spend file of a run's judge.

    The settings of the judge are not in its name: a run that is resumed with a larger budget has spent what it had.

    Args:
        run: the run's own folder, the same one when it is resumed.
        number: of the judge in the order of the config, from 1.
        earlier: where pv-rl kept it before. A file there is moved if it lies in the run's folder, and is left alone
            elsewhere, since other runs may have written it.
    """
    path = run / "judge" / (FILE if number == 1 else f"spent-{number}.json")
    if (
        earlier is not None
        and not path.exists()
        and earlier.is_file()
        and run.resolve() in earlier.resolve().parents
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(earlier, path)
    return path


class Spending:
    """Restores what the run has spent from the folder's spend file, and keeps that up to date.

    Args:
        folder: of the file; made if it is missing.
        keeper: the budget. If it has a limit, each request is written down before it is let through.
        name: of the file.
        start: names the start of the run: if the file has the same, its step goes on, else only its run does.

    Raises:
        DataError: the file is not one that this class wrote.
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
            self._open()
            self._restore()
            self._write()
            os.truncate(self._file, RECORD)  # what a user wrote may be longer
        except BaseException as error:
            if self._file >= 0:
                os.close(self._file)
            if not isinstance(error, OSError):
                raise
            raise SetupError(
                f"the judge's spending is kept in {self._path}, which cannot be opened ({error}). Make it writable"
            ) from error
        keeper.book = self._write

    def save(self, *, at_once: bool = False) -> None:
        """Write the file within a second, or `at_once`. A disk that is full is only said."""
        if self._file < 0:
            return
        if not at_once:
            if self._due is None:
                self._due = asyncio.get_running_loop().call_later(EVERY_S, self._save_due)
            return
        try:
            self._write()
        except OSError as error:
            logger.warning("%s could not be written: %s", self._path, error)

    def close(self) -> None:
        """Save, and let another process use the file. A limited budget lets nothing through any more."""
        self.save(at_once=True)
        if self._due is not None:
            self._due.cancel()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _restore(self) -> None:
        said = _read(self._path)
        if said is None:
            return
        spent = Spent(in_run=_totals(said, self._path, "in_run"))
        if self._start and said.get("start") == self._start:  # this process died in the middle of a step
            spent = replace(spent, step=int(said["step"]), in_step=_totals(said, self._path, "in_step"))
        self._keeper.restore(spent)

    def _save_due(self) -> None:
        self._due = None
        self.save(at_once=True)

    def _write(self) -> None:
        if os.fstat(self._file).st_nlink == 0:  # deleted, or folded into the file of a whole run
            os.close(self._file)
            self._open()
        spent = self._keeper.at_most
        record = {
            "step": spent.step,
            "in_step": vars(spent.in_step),
            "in_run": vars(spent.in_run),
            "start": self._start,
            "pid": os.getpid(),
        }
        os.pwrite(self._file, json.dumps(record).ljust(RECORD - 1).encode() + b"\n", 0)

    def _open(self) -> None:
        """Open the file and lock it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                return fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    pid = (_read(self._path) or {}).get("pid")
                    raise SetupError(
                        f"{self._path} is in use by another process (pid {pid}): two runs cannot share one folder. "
                        "Stop that process, or give this run a folder of its own (trainer.default_local_dir)"
                    ) from None
                time.sleep(0.1)
            except OSError:  # a file system without locks
                return None


def _read(path: Path) -> dict[str, Any] | None:
    """The record; None where there is none yet."""
    for attempt in (1, 2, 3):
        try:
            text = path.read_text()
            said = json.loads(text) if text else None
            if said is None or isinstance(said, dict):
                return said
            raise ValueError("it is not a mapping")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            if attempt == 3:
                raise _unreadable(path, error) from error
            time.sleep(0.01)  # read while its process wrote it
    return None


def _totals(said: Mapping[str, Any], path: Path, name: str) -> Totals:
    try:
        numbers = {one: said[name][one] for one in ("usd", "calls", "tokens")}
        if not all(isinstance(number, int | float) and number >= 0 for number in numbers.values()):
            raise ValueError("a number that is none, or below 0")
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(path, error) from error
    return Totals(**numbers)


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path} does not say what the run has spent ({error}). Restore it, or delete it to begin the budget anew"
    )
