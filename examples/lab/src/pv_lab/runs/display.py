"""Terminal display of a lab: a bar over all runs, the run that trains, and the time that is left."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from pv_lab.runs.plan import LabRun
from pv_runs.train.progress import say

__all__ = ["Display", "Pace", "said"]


class Pace:
    """Measures what a run takes to start and what a step takes, and says how much is left.

    Example: a run begins at 0 s, is at step 0 at 40 s and at step 10 at 100 s: 6 s a step. With 20 steps of it to go
    and one run of 30 steps after it, 20 x 6 + 40 + 30 x 6 = 340 s are left.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._starts: list[float] = []
        self._spans: list[tuple[int, float]] = []
        """Steps and seconds between the first and the last line of each run."""
        self._began = 0.0
        self._first: tuple[int, float] | None = None
        self._step = 0

    def begin(self, now: float) -> None:
        """A run begins. `now`: seconds of any clock that only moves forward."""
        self._began, self._first, self._step = now, None, 0

    def at(self, step: int, now: float) -> None:
        """The run has logged a step; its first line comes after Ray, the workers and the validation before training."""
        self._step = step
        if self._first is None:
            self._first = (step, now)
            self._starts.append(now - self._began)
            self._spans.append((0, 0.0))
        else:
            self._spans[-1] = (step - self._first[0], now - self._first[1])

    def left(self, runs_after: int) -> float | None:
        """Seconds until all runs have ended, `runs_after` of them after this one; None before a step was timed."""
        steps, seconds = sum(one for one, _ in self._spans), sum(one for _, one in self._spans)
        if not steps:
            return None
        a_step, a_start = seconds / steps, sum(self._starts) / len(self._starts)
        here = max(0, self._steps - self._step) * a_step
        return here + (0 if self._first else a_start) + runs_after * (a_start + self._steps * a_step)


def said(seconds: float) -> str:
    """A length of time for people: `50 s`, `12 min`, `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


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
