"""Root cause of a failed run, found in the trainer's log: the exception that the others follow from."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["describe_failure"]

READ_BYTES = 64 * 2**20
"""Of the end of the log. The cause may be thousands of lines above the last one."""
LONGEST = 1000
"""Characters of an exception that are shown."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PREFIX = re.compile(r"^(\([\w:.]+(?: pid=\d[^)]*)?\)) ?")
"""Ray's, before each line of a worker: `(WorkerDict pid=7, ip=10.0.0.2) `."""
REPEATED = re.compile(r"\[repeated \d+x across cluster\].*")
FRAME = re.compile(r"^\s+\S|^\S*ray::|^\s*$")
"""A line within a traceback."""
NAMED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Halted)(?:\([\w.]+\))?(?::.*)?$")
AFTER_FRAMES = re.compile(r"^(?:\w+\.)*[A-Z]\w*(?:: .*)?$")
"""An exception of any name, which ends a traceback."""
SYSTEM = re.compile(
    r".*(?:running low on memory|No space left on device|oom-kill|CUDA out of memory).*", re.IGNORECASE
)
FOLLOWS = re.compile(
    r"RayTaskError|RayActorError|ActorDied|ActorUnavailable|WorkerCrashed|EngineDead|EngineCore|DistBackendError"
    r"|terminal groups|CancelledError|KeyboardInterrupt|BrokenPipe|ConnectionReset|EOFError|SystemExit"
    r"|See (?:root cause|stack trace)|sys\.meta_path is None|Python is likely shutting down"
)
"""Exceptions that follow from an earlier one: of a process that waited for another, or was ended."""
CAUSE_OF = "The above exception was the direct cause of the following exception"
IGNORED = "Exception ignored in"
SHOWN = 2
"""Further exceptions that are shown."""


def describe_failure(returncode: int, log: Path, trainer: str = "verl") -> str:
    """The root cause, then how the trainer ended, where its log is, and the last other exceptions in it."""
    if returncode < 0:
        number = signal.Signals(-returncode)
        guess = " (is there enough memory?)" if number is signal.SIGKILL else ""
        return f"{trainer} was ended by {number.name}{guess}; its log: {log}"
    lines = _tail(log)
    found = list(dict.fromkeys(reversed(list(_exceptions(lines)))))[::-1]  # each where it comes last
    ended = f"{trainer} ended with exit code {returncode}; its log: {log}"
    if not found:
        last = [line for line in (_clean(one)[1] for one in lines[-50:]) if line][-5:]
        return "\n".join([ended, *last])
    cause = next((one for one in reversed(found) if not FOLLOWS.search(one)), found[-1])
    others = [one for one in found if one != cause][-SHOWN:]
    return "\n".join([cause, ended, *(f"then: {one}" for one in others)])


def _tail(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - READ_BYTES))
        return file.read().decode(errors="replace").splitlines()


def _clean(line: str) -> tuple[str, str]:
    """The process that printed a line, and the line without colours and without Ray's prefix."""
    line = COLOUR.sub("", line).rstrip()
    prefix = PREFIX.match(line)
    text = line[prefix.end() :] if prefix else line
    return prefix[1] if prefix else "", REPEATED.sub("", text).rstrip()


def _exceptions(lines: Iterable[str]) -> Iterator[str]:
    """Exceptions in the order of their lines. Of a chain `raise ... from`, the first moves behind the one it caused."""
    traces: dict[str, bool] = {}  # of each process: whether its last line is in a traceback
    ignored: dict[str, bool] = {}
    last: dict[str, str] = {}
    causes: dict[str, str] = {}
    for line in lines:
        who, text = _clean(line)
        if text.startswith(IGNORED):
            ignored[who] = True
        elif text.startswith(CAUSE_OF):
            causes[who] = last.get(who, "")
        elif text.startswith("Traceback (most recent call last)"):
            traces[who] = True
        elif traces.get(who) and FRAME.match(text):
            pass
        elif (traces.get(who) and AFTER_FRAMES.match(text)) or NAMED.match(text) or SYSTEM.match(text):
            traces[who] = False
            if not ignored.pop(who, False):
                yield (shown := text.strip()[:LONGEST])
                if cause := causes.pop(who, ""):
                    yield cause
                last[who] = shown
        else:
            traces[who] = False
