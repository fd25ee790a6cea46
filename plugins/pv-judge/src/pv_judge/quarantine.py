"""Quarantine of questions whose answers hang the parser, kept in a file that outlives a `kill -9`.

The actor marks a question in the file before it parses the answer, and clears the mark after. A restarted actor finds
the mark of the one that hung, and does not ask that question again; all others are asked as before.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from pv_judge.answer import JudgeFailure, Parser

__all__ = ["Quarantine"]

SLOTS = 64
"""Starts of the actor with a slot each; later ones share the last slot."""
MARK = 32
"""Bytes of a mark: a SHA-256."""


class Quarantine:
    """The marks of earlier starts, and a slot for this one. `path` is created if it is missing."""

    def __init__(self, path: str | Path) -> None:
        Path(path).touch()
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115 - open for as long as the actor lives
        raw = self._file.read(SLOTS * MARK).ljust(SLOTS * MARK, b"\0")
        marks = [raw[at : at + MARK] for at in range(0, SLOTS * MARK, MARK)]
        self._held = {mark for mark in marks if any(mark)}
        free = [slot for slot, mark in enumerate(marks) if not any(mark)]
        self._own = free[0] * MARK if free else (SLOTS - 1) * MARK

    def parser(self, key: str, parse: Parser) -> Parser:
        """`parse`, with the question marked while it runs.

        Args:
            key: 64 hex digits, the question's key in the response cache.
            parse: from the text of an answer to its value.

        Raises:
            JudgeFailure: of kind `invalid_json`: an earlier start hung on this question.
        """
        mark = bytes.fromhex(key)
        if mark in self._held:
            raise JudgeFailure(
                "the judge's actor hung, or was killed, while it parsed the answer to this question. It is not asked "
                "again in this run",
                "invalid_json",
            )

        def parse_marked(text: str) -> Any:
            self._write(mark)
            try:
                return parse(text)
            finally:
                self._write(bytes(MARK))

        return parse_marked

    def _write(self, mark: bytes) -> None:
        # Not a memory map: where the disk is full, writing to one kills the process (SIGBUS).
        with suppress(OSError):
            os.pwrite(self._file.fileno(), mark, self._own)
