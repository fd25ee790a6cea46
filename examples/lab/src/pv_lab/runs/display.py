"""Terminal display of a lab: a bar over all runs, the run that trains, and the time that is left."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pv_judge.pages.text import plural
from pv_lab.runs.plan import LabRun
from pv_runs.train.progress import say

__all__ = ["Display"]

STEP = re.compile(r"step ([0-9]+)\b")
"""How a line of `pv_runs.train.progress` begins."""
PACE_S = 3600
"""The time left is estimated from the steps of so many seconds, the starts of runs between them included."""


class Display:
    """A live display of all runs. On a console that is no terminal it prints a line a step.

    It is fed by the lines that `pv-rl train` prints of a run: give that `run_console`.
    """

    def __init__(self, console: Console, *, runs: int, ended: int, steps: int) -> None:
        self._console, self._runs, self._ended, self._steps = console, runs, ended, steps
        self.run_console = Console(file=_Lines(self._line), soft_wrap=True)
        """Where a run's lines go."""
        self._name = self._now = ""
        self._bar = Progress(
            *(TextColumn("{task.fields[runs]}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=PACE_S,
        )
        self._task = self._bar.add_task("", total=runs * steps, completed=ended * steps, runs="")

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, run: LabRun) -> None:
        """The next run starts, or goes on."""
        self._name, self._now = f"{run.mode}, seed {run.seed}", "starting Ray and the workers"
        self._update(0)
        if not self._console.is_terminal:
            going_on = "" if run.state == "new" else ", goes on"
            say(self._console, f"run {self._ended + 1} of {self._runs}: {self._name}{going_on}")

    def end(self, state: str) -> None:
        """The run has ended; `state` is its record's."""
        self._ended += 1
        self._update(0)
        say(self._console, f"run {self._ended} of {self._runs}: {self._name}: {state}. {self._now}")

    def _line(self, line: str) -> None:
        step = STEP.match(line)
        if step is None:  # what a run has to say beside its steps
            say(self._console, line)
            return
        self._now = line
        self._update(int(step[1]))
        if not self._console.is_terminal:
            say(self._console, f"{self._name}  {line}")

    def _update(self, step: int) -> None:
        self._bar.update(
            self._task,
            completed=self._ended * self._steps + step,
            runs=f"{self._ended} of {plural(self._runs, 'run')}",
            description=f"{self._name}   {self._now}",
        )


class _Lines(io.StringIO):
    """A file that hands on each line that is written to it, and keeps none."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__()
        self._take, self._rest = take, ""

    def write(self, text: str, /) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take(line)
        return len(text)
