"""Failure report: why verl failed, in a few lines, from its exit code and the end of its log."""

from __future__ import annotations

import re
import signal
from pathlib import Path

__all__ = ["describe"]

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
RAY_PREFIX = re.compile(r"^\([\w:.]+ pid=\d[^)]*\)\s*")
EXCEPTION = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt)\b.*")
TAIL_BYTES = 200_000


def describe(returncode: int, log: Path) -> str:
    """`verl ended with ...; see LOG`, and the last exceptions that the log holds."""
    if returncode < 0:
        number = signal.Signals(-returncode)
        guess = " (is there enough memory?)" if number is signal.SIGKILL else ""
        return f"verl was ended by {number.name}{guess}; see {log}"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    lines = [RAY_PREFIX.sub("", COLOUR.sub("", line)).rstrip() for line in lines]
    exceptions = dict.fromkeys(line for line in lines if EXCEPTION.match(line))
    said = list(exceptions)[-3:] or [line for line in lines if line][-5:]
    return f"verl ended with exit code {returncode}; see {log}. It says:\n" + "\n".join(said)
