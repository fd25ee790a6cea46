"""What a sentinel has said: `sentinel.jsonl`, an object an alarm."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from pathlib import Path

from pv_runs.growing_file import Replaced, Tail
from pv_runs.watch.frame import Alarm
from pv_runs.watch.text import visible

__all__ = ["Alarms"]

KEPT = 5
LONGEST = 400
"""Characters of a message."""


class Alarms:
    """The last alarms of a file that may come late or never."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._seen: deque[Alarm] = deque(maxlen=KEPT)
        self._there = False

    def look(self) -> list[Alarm] | None:
        """The latest first; None as long as there is no file."""
        try:
            self._read()
        except Replaced:
            self._tail = Tail(self._tail.path)
            self._seen.clear()
            with contextlib.suppress(Replaced):
                self._read()
        return list(reversed(self._seen)) if self._there else None

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            for line in self._tail.look():
                if (alarm := _parse(line)) is not None:
                    self._seen.append(alarm)
            self._there = True


def _parse(line: bytes) -> Alarm | None:
    """`sign`, `step`, and `message`, or the watcher's own `sentence`; None for what is no alarm."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("sign"), str):
        return None
    message = said.get("message") or said.get("sentence")
    if not isinstance(message, str):
        value, expected = (str(said.get(name))[:40] for name in ("value", "expected"))
        message = f"{value}, where {expected} was to be expected"
    step = said.get("step")
    return Alarm(
        sign=visible(said["sign"][:60]),
        step=step if type(step) is int and abs(step) < 10**12 else None,
        message=visible(" ".join(message[: 2 * LONGEST].split()))[:LONGEST],
    )
