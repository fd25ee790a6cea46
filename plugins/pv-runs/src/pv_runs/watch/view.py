"""A run looked at again and again."""

from __future__ import annotations

import math
import time
from pathlib import Path

from pv_judge.pages.text import plain, plural
from pv_rl import metric_names
from pv_runs.metrics_log import Log
from pv_runs.watch.alarms import Alarms
from pv_runs.watch.frame import Frame, Section
from pv_runs.watch.numbers import Numbers
from pv_runs.watch.places import find_places
from pv_runs.watch.rows import fill
from pv_runs.watch.settings import SettingsFile
from pv_runs.watch.status import find_status, total_steps
from pv_runs.watch.traces import Traces

__all__ = ["View"]

OVER = 10
"""Steps over which a change is told."""
COST = metric_names.COST


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
