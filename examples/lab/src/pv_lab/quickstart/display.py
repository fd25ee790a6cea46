"""Terminal display of the quick start: a progress bar and the main metrics."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pv_judge.pages.blocks import Block, Column, Heading, Table
from pv_judge.pages.curve import BLOCKS, sparkline
from pv_judge.pages.text import plural
from pv_lab.quickstart.curves import Point

__all__ = ["Display", "before_and_after", "show"]


class Display:
    """A live display of a run. On a console that is no terminal it prints one line a validated step."""

    def __init__(self, console: Console, steps: int, start_up: str = "starting Ray and the workers"):
        self.console = console
        self.steps = steps
        self.points: list[Point] = []
        self.phase = start_up
        self._began = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
        )
        self._task = self._progress.add_task(self.phase, total=steps, left="")
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=2, transient=True)
        self._first_step_at: float | None = None

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self._live.start()
        else:
            self.console.print(f"{self.phase} ...")
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def enter(self, phase: str) -> None:
        """Show what the run does now."""
        self.phase = phase
        self._progress.update(self._task, description=phase)
        if not self.console.is_terminal:
            self.console.print(f"{phase} ... ({time.monotonic() - self._began:.0f} s)", highlight=False)

    def add(self, point: Point) -> None:
        """Take in the next point of the run."""
        self.points.append(point)
        self.phase = "training"
        self._progress.update(
            self._task, completed=point.step, description=self.phase, left=self._left(point.step)
        )
        if not self.console.is_terminal and (point.balanced is not None or point.step == 1):
            self.console.print(_line(self.points, self.steps), highlight=False)

    def _left(self, step: int) -> str:
        """Time left, from the pace since the first step: the start-up before it is no guide."""
        now = time.monotonic()
        if self._first_step_at is None or step <= 1:
            self._first_step_at = now
            return ""
        left = (now - self._first_step_at) / (step - 1) * (self.steps - step)
        return f"about {left:.0f} s left"

    def _render(self) -> Group:
        return Group(self._progress, _line(self.points, self.steps))


def _line(points: list[Point], steps: int) -> str:
    if not points:
        return "held-out accuracy, reward and response length show up with the first step"
    last = points[-1]
    held_out = next((p for p in reversed(points) if p.balanced is not None), None)
    parts = [
        f"step {last.step}/{steps}",
        f"reward {show(last.reward)}",
        f"response {show(last.length, 0)} tokens",
    ]
    if held_out:
        parts.append(
            f"held-out balanced accuracy {show(held_out.balanced)} at step {held_out.step} "
            f"(right proofs {show(held_out.right)}, wrong proofs {show(held_out.wrong)})"
        )
    return "   ".join(parts)


def show(value: float | None, digits: int = 2) -> str:
    """A number for people; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def before_and_after(points: list[Point], mode: str, blocks: str = BLOCKS) -> list[Block]:
    """A table of the first and the last validation, with the rewards and lengths of the steps, and a line of each.

    Args:
        points: of the run, from step 0 on.
        mode: its name in the title.
        blocks: characters of the lines, low to high.
    """
    validated = [p for p in points if p.balanced is not None]
    trained = [p for p in points if p.reward is not None]
    steps = points[-1].step
    measures = [
        ("held-out accuracy, right proofs", "right", validated, 1, 2),
        ("held-out accuracy, wrong proofs", "wrong", validated, 1, 2),
        ("held-out balanced accuracy", "balanced", validated, 1, 2),
    ]
    if trained:
        window = max(1, min(5, len(trained) // 2))
        measures += [
            (f"reward, first and last {window} steps", "reward", trained, window, 2),
            (
                f"tokens, first and last {window} steps",
                "length",
                trained,
                window,
                0,
            ),
        ]
    lines: list[tuple[str, str, str, str]] = []
    for name, attribute, shown, window, digits in measures:
        values = [getattr(point, attribute) for point in shown]
        before, after = (show(sum(part) / window, digits) for part in (values[:window], values[-window:]))
        lines.append((name, sparkline(values, 20, blocks), before, after))
    columns: list[Column[tuple[str, str, str, str]]] = [
        Column("", lambda line: line[0], left=True),
        Column(f"steps 0 to {steps}", lambda line: line[1], left=True),
        Column("start", lambda line: line[2]),
        Column("end", lambda line: line[3]),
    ]
    title = Heading(f"The lab verifier before and after {plural(steps, 'step')} of {mode}", level=1)
    return [title, Table.of(columns, lines)]
