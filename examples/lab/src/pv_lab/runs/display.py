"""What the terminal shows of the whole lab: one bar, the run that is trained, and the time that is left."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from pv_lab.runs.pace import Pace, said
from pv_lab.runs.plan import LabRun
from pv_runs.train.progress import say

__all__ = ["Display"]

STEP = re.compile(r"step ([0-9]+)\b")
"""How a line of `pv_runs.train.progress` begins."""


class Display:
    """A live display of all runs. On a console that is no terminal it prints a line a step.

    It is fed by the lines that `pv-rl train` prints of a run: give that `run_console`.
    """

    def __init__(self, console: Console, *, runs: int, ended: int, steps: int) -> None:
        self._console, self._runs, self._ended, self._steps = console, runs, ended, steps
        self.run_console = Console(file=_Lines(self._line), soft_wrap=True)
        """Where a run's lines go."""
        self._pace = Pace(steps)
        self._name = self._now = ""
        self._bar = Progress(
            TextColumn("{task.fields[runs]}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._task = self._bar.add_task("", total=runs * steps, completed=ended * steps, runs="", left="")
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=2, transient=True)

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def begin(self, run: LabRun) -> None:
        """The next run starts, or goes on."""
        self._name = f"{run.mode}, seed {run.seed}"
        self._pace.begin(time.monotonic())
        self._now = "starting Ray and the workers"
        self._update(0)
        if not self._console.is_terminal:
            going_on = "" if run.state == "new" else ", goes on"
            say(
                self._console,
                f"run {self._ended + 1} of {self._runs}: {self._name}{going_on}{self._left('; ')}",
            )

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
        self._pace.at(int(step[1]), time.monotonic())
        self._update(int(step[1]))
        if not self._console.is_terminal:
            say(self._console, f"{self._name}  {line}{self._left('  ')}")

    def _update(self, step: int) -> None:
        self._bar.update(
            self._task,
            completed=self._ended * self._steps + step,
            runs=f"{self._ended} of {self._runs} runs",
            left=self._left(""),
        )

    def _left(self, before: str) -> str:
        left = self._pace.left(max(0, self._runs - self._ended - 1))
        return "" if left is None else f"{before}about {said(left)} left"

    def _render(self) -> Group:
        return Group(self._bar, Text(f"{self._name}   {self._now}"))


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
