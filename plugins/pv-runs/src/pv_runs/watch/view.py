"""View of a run: reads its folder again and again, and makes a frame of it. It trusts nothing that it reads."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pv_judge.pages.text import one_line, plain, plural, redact
from pv_rl.errors import DataError
from pv_runs.report.collecting import Log
from pv_runs.report.finding import CONFIGS
from pv_runs.report.hydra_record import read_config
from pv_runs.report.runs import read_about
from pv_runs.watch.frame import Alarm, Frame, Section
from pv_runs.watch.numbers import Numbers
from pv_runs.watch.places import find_places
from pv_runs.watch.rows import fill
from pv_runs.watch.status import find_status, total_steps
from pv_runs.watch.tail import Replaced, Tail
from pv_runs.watch.traces import Traces

__all__ = ["View"]

OVER = 10
"""Steps over which a change is shown."""
COST = "pv_rl/judge/usd/sum"
RECORD = "run.json"
KEPT = 5
"""Alarms that are shown."""
LONGEST = 400
"""Characters of an alarm's message."""


class View:
    """Of the run in `folder`. Nothing in it is trusted, and nothing is written to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers, self._traces = Numbers(), Traces()
        self._alarms: Alarms | None = None
        self._log: Log | None = None
        self._sections: list[Section] = []
        self._settings = SettingsFile(folder)

    def look(self, now: float | None = None) -> Frame:
        """The run at this moment.

        Args:
            now: seconds since the epoch; the clock's by default.
        """
        settings = self._settings.look()
        places = find_places(self.folder, settings.config, settings.about)
        self._alarms = self._alarms or Alarms(places.sentinel)
        log = self._numbers.look(places.metrics)
        if log is not self._log:
            self._log, self._sections = log, fill(log.series, OVER, log.last_step)
        total = total_steps(settings.config, settings.about)
        now = time.time() if now is None else now
        status = find_status(places, log, settings.about, total, now)
        traces, source = self._traces.look(places)
        notes = [*settings.notes]
        if self._numbers.skipped:
            notes.append(
                f"left out {plural(self._numbers.skipped, 'line')} of metrics that verl did not write"
            )
        cost = [value for value in log.series.get(COST, {}).values() if math.isfinite(value)]
        return Frame(
            name=plain(self.folder.resolve().name, 80),
            state=status.state,
            note=status.note,
            step=log.last_step,
            total=status.total,
            seconds=status.seconds,
            left=status.left,
            wrote=status.wrote,
            now=now,
            usd=sum(cost) if cost else None,
            over=OVER,
            sections=self._sections,
            traces=traces,
            traces_from=source,
            alarms=self._alarms.look(),
            notes=notes,
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """As read from a run's folder; none of it is shown as it is."""

    config: Mapping[str, str] = field(default_factory=dict)
    """By dotted key, nothing resolved."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What run.json says."""
    notes: tuple[str, ...] = ()
    """What could not be read."""


class SettingsFile:
    """Reads the files again only when one of them has changed: a config has 1,000 lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp: object = None
        self._settings = Settings()

    def look(self) -> Settings:
        """What they say now."""
        stamp = []
        for name in (RECORD, *(f"{config}/config.yaml" for config in CONFIGS)):
            with contextlib.suppress(OSError):
                state = (self._folder / name).stat()
                stamp.append((name, state.st_mtime_ns, state.st_size, state.st_ino))
        if stamp != self._stamp:
            self._settings, self._stamp = _read(self._folder), stamp
        return self._settings


def _read(folder: Path) -> Settings:
    config: dict[str, str] = {}
    about: dict[str, Any] = {}
    notes = []
    try:
        config = read_config(folder)
    except (DataError, OSError) as error:
        notes.append(plain(redact(str(error))))
    try:
        about = read_about(folder / RECORD)
    except (DataError, OSError) as error:
        notes.append(plain(redact(str(error))))
    return Settings(config=config, about=about, notes=tuple(notes))


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
        sign=one_line(said["sign"][:60]),
        step=step if type(step) is int and abs(step) < 10**12 else None,
        message=one_line(" ".join(message[: 2 * LONGEST].split()))[:LONGEST],
    )
