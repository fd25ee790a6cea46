"""Score file: JSON lines that are appended while rows are scored, so that the same command resumes after a stop."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pv_judge.files import load_json, write_atomically
from pv_rl.errors import DataError, SetupError
from pv_rl.rewards.base import RewardOutput

__all__ = ["ScoreFile", "fingerprint"]

BLOCK = 1 << 20


def fingerprint(rollouts: Path, settings: Mapping[str, Any]) -> str:
    """16 hex digits of a file's content and of the settings with which it is scored."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    with rollouts.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()[:16]


class ScoreFile:
    """One JSON object a row, in the order of scoring until `finish` sorts them.

    Rows that the judge failed for are not counted as found: the command scores them again, and `finish` drops the old
    lines. Each line begins with the fingerprint of its run. An incomplete last line is dropped.

    Args:
        path: the file; made if it is missing.
        run: see `fingerprint`.
        found: called with the result in each line of the file.

    Raises:
        DataError: the file has a line of another run, or one that is damaged.
        SetupError: another process writes to it.
    """

    def __init__(self, path: Path, run: str, found: Callable[[RewardOutput], None]) -> None:
        self.path = path.resolve()  # a link stays one, and a reward may change the folder
        self._head = f'{{"run": "{run}", "row": '.encode()
        self._places: dict[int, tuple[int, int]] = {}  # of a row: where its line begins, and its bytes
        self._failed = False  # whether it holds rows that the judge failed for, which are scored again
        self._file = path.open("a+b", buffering=0)
        try:
            self._lock()
            self._read(found)
        except BaseException:
            self._file.close()
            raise

    def __contains__(self, number: int) -> bool:
        return number in self._places

    def __len__(self) -> int:
        return len(self._places)

    def append(self, number: int, row: Mapping[str, Any]) -> None:
        """Write a row. When this returns, the row survives a kill of the process.

        Raises:
            OSError: it could not be written; nothing of it stays.
        """
        rest = json.dumps(row, ensure_ascii=False, default=str)[1:]
        # Half of a surrogate pair has no UTF-8; Python's escape for it is JSON's too.
        line = self._head + f"{number}, {rest}\n".encode("utf-8", "backslashreplace")
        begin = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except BaseException:
            self._file.truncate(begin)
            raise
        self._places[number] = (begin, len(line))

    def finish(self) -> None:
        """Sort the lines in the order of the input.

        Raises:
            OSError: it could not be written; the file is unchanged.
        """
        if self._failed or list(self._places) != sorted(self._places):
            write_atomically(self.path, self._write_sorted)

    def close(self) -> None:
        """Close and unlock the file."""
        self._file.close()

    def _write_sorted(self, target: Path) -> None:
        with self.path.open("rb") as source, target.open("wb") as file:
            for _, (begin, size) in sorted(self._places.items()):
                source.seek(begin)
                file.write(source.read(size))

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat()):
                raise BlockingIOError  # it put another file in this one's place, see `finish`
        except BlockingIOError:
            raise SetupError(
                f"another process writes --out {self.path}. Wait for it, or name another file"
            ) from None

    def _read(self, found: Callable[[RewardOutput], None]) -> None:
        begin = 0
        with self.path.open("rb") as file:
            for at, line in enumerate(file, start=1):
                whole = line.endswith(b"\n")
                if not line.startswith(self._head) and (whole or not self._head.startswith(line)):
                    raise DataError(
                        f"--out {self.path} has rows of another command (line {at}): the rollouts, the reward or its "
                        "options differ. Name another file; answers in judge.cache are not paid for again"
                    )
                if not whole:
                    self._file.truncate(begin)
                    return
                number, output = self._parse(line, at)
                if output.metrics.get("judge_failed"):
                    self._failed = True
                elif number not in self._places:
                    self._places[number] = (begin, len(line))
                    found(output)
                begin += len(line)

    def _parse(self, line: bytes, at: int) -> tuple[int, RewardOutput]:
        try:
            row = load_json(line)
            output = RewardOutput(score=row["score"], valid=row["valid"], metrics=row["metrics"])
            return int(row["row"]), output
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"line {at} of --out {self.path} is damaged ({error!r}). Delete the line, and its row is scored again"
            ) from error
