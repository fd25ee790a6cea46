"""View of a run: reads its folder again and again, and makes a frame of it. It trusts nothing that it reads."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pv_judge.files import load_json
from pv_judge.pages.text import one_line, plain, plural, redact
from pv_rl.errors import DataError
from pv_runs import metric_names
from pv_runs.growing_file import last_lines
from pv_runs.hydra_record import read_config
from pv_runs.in_force import describe, in_force
from pv_runs.measures import HELD_OUT
from pv_runs.metrics_log import Log
from pv_runs.run_folder import CONFIGS, RECORD
from pv_runs.run_record import read_about
from pv_runs.watch.frame import Alarm, Frame, Section
from pv_runs.watch.numbers import Numbers
from pv_runs.watch.places import find_places
from pv_runs.watch.rows import OVER, fill
from pv_runs.watch.status import find_status, total_steps
from pv_runs.watch.traces import Traces

__all__ = ["View"]

COST = metric_names.COST
KEPT, MOST_ALARMS, MOST = 5, 1000, 2**20
"""Alarms that are shown as text and as marks, and bytes at the end of their file that are read."""
LONGEST = 400
"""Characters of an alarm's message."""


class View:
    """Of the run in `folder`. Nothing in it is trusted, and nothing is written to it.

    Args:
        folder: of the run.
        show: patterns of further metrics to show.
    """

    def __init__(self, folder: Path, show: Sequence[str] = ()) -> None:
        self.folder, self._show = folder, show
        self._numbers, self._traces = Numbers(show), Traces()
        self._log: Log | None = None
        self._sections: list[Section] = []

    def look(self, now: float | None = None) -> Frame:
        """The run at this moment.

        Args:
            now: seconds since the epoch; the clock's by default.
        """
        settings = _read_settings(self.folder, _stamp(self.folder))
        places = find_places(self.folder, settings.config, settings.about)
        log = self._numbers.look(places.metrics)
        if log is not self._log:
            self._log, self._sections = log, fill(log.series, OVER, log.last_step, self._show)
        total = total_steps(settings.config, settings.about)
        now = time.time() if now is None else now
        status = find_status(places, log, settings.about, total, now)
        traces, source = self._traces.look(places)
        notes = [*settings.notes]
        if self._numbers.skipped:
            notes.append(
                f"left out {plural(self._numbers.skipped, 'line')} of metrics that verl did not write"
            )
        for key, phases in in_force(settings.about, log.starts, settings.config).items():
            if len(phases) > 1:
                notes.append(plain(f"{key}: {describe(phases)}", 200))
        alarms, unread = _alarms(places.sentinel)
        notes += unread
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
            alarms=None if alarms is None else alarms[:KEPT],
            notes=notes,
            alarmed=[alarm.step for alarm in alarms or () if alarm.step is not None],
            resumed=self._numbers.resumed,
            validated=sorted({step for key in HELD_OUT.values() for step in log.series.get(key, ())}),
        )


class _Settings(NamedTuple):
    config: Mapping[str, str]
    """By dotted key, nothing resolved."""
    about: Mapping[str, Any]
    """What run.json has."""
    notes: tuple[str, ...]
    """What could not be read."""


def _stamp(folder: Path) -> tuple[object, ...]:
    """Differs when the config or run.json has changed: a config has 1,000 lines, too many to parse at each look."""
    stamp = []
    for name in (RECORD, *(f"{config}/config.yaml" for config in CONFIGS)):
        with contextlib.suppress(OSError):
            state = (folder / name).stat()
            stamp.append((name, state.st_mtime_ns, state.st_size, state.st_ino))
    return tuple(stamp)


@lru_cache(maxsize=1)
def _read_settings(folder: Path, stamp: tuple[object, ...]) -> _Settings:
    notes = []

    def read(reader: Callable[[Path], dict[str, Any]], path: Path) -> dict[str, Any]:
        try:
            return reader(path)
        except (DataError, OSError) as error:
            notes.append(plain(redact(str(error))))
            return {}

    config, about = read(read_config, folder), read(read_about, folder / RECORD)
    return _Settings(config, about, tuple(notes))


def _alarms(path: Path) -> tuple[list[Alarm] | None, list[str]]:
    """The last alarms of `sentinel.jsonl`, the latest first, and what could not be read of it.

    No alarms but None as long as there is no file, or none that can be read: nobody knows then that all is well.
    """
    try:
        lines = last_lines(path, MOST)
    except FileNotFoundError:
        return None, []
    except OSError as error:
        return None, [f"{path.name} cannot be read, its alarms are not shown: {one_line(str(error))}"]
    events = [_event(line) for line in lines]
    alarms = list(
        islice((alarm for said in events if said and (alarm := _alarm(said)) is not None), MOST_ALARMS)
    )
    broken = events.count(None)
    if not broken:
        return alarms, []
    note = f"{path.name}: {plural(broken, 'line')} cannot be read, alarms may be missing"
    return alarms or None, [note]


def _event(line: bytes) -> dict[str, Any] | None:
    """A line of the sentinel's; None for anything else."""
    try:
        said = load_json(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and said else None


def _alarm(said: Mapping[str, Any]) -> Alarm | None:
    """`sign`, `step`, and `message`, or the watcher's own `sentence`; None for what is no alarm."""
    if not isinstance(said.get("sign"), str):
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
