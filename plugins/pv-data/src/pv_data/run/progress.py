"""How far a stage is: questions, money and time, seen from its files, so that it is the same for every executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pv_data.run.chunk import Job, is_done, pending
from pv_data.run.spent import spent

__all__ = ["shown"]

EVERY_S = 1.0
PLAIN_S = 30.0
"""Without a terminal: a line this often."""
LOOKED_AT = 256
"""Chunks that are looked at each time, the first that are still to be done."""


@contextmanager
def shown(job: Job, budget_usd: float | None, console: Console) -> Iterator[None]:
    """Show a stage's progress for as long as this lasts, in questions."""
    left = [(chunk, job.questions(chunk)) for chunk in pending(job)]
    total = sum(questions for _, questions in left)
    state = {"done": 0}

    def look() -> int:
        for item in left[:LOOKED_AT]:
            if is_done(job, item[0]):
                left.remove(item)
                state["done"] += item[1]
        return state["done"]

    if console.is_terminal:
        with _bar(job, budget_usd, console, total, look):
            yield
    else:
        with _lines(job, budget_usd, console, total, look):
            yield


@contextmanager
def _bar(
    job: Job, budget_usd: float | None, console: Console, total: int, look: Callable[[], int]
) -> Iterator[None]:
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        *(TextColumn("{task.fields[money]}"), TimeElapsedColumn(), TimeRemainingColumn()),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(job.stage, total=total, money="")

        def update() -> None:
            bar.update(task, completed=look(), money=_money(job.run, budget_usd))

        with _each(EVERY_S, update):
            yield


@contextmanager
def _lines(
    job: Job, budget_usd: float | None, console: Console, total: int, look: Callable[[], int]
) -> Iterator[None]:
    begin = time.monotonic()

    def say() -> None:
        done, took = look(), time.monotonic() - begin
        left = f", about {(total - done) * took / done / 60:.0f} min left" if done else ""
        console.print(
            f"{job.stage}: {done} of {total} questions, {_money(job.run, budget_usd)}{left}", highlight=False
        )

    with _each(PLAIN_S, say):
        yield


@contextmanager
def _each(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Act every so many seconds on another thread, and once at the end."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            act()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        act()


def _money(run: Path, budget_usd: float | None) -> str:
    totals = spent(run)
    of = f" of ${budget_usd:.2f}" if budget_usd is not None else ""
    return f"{totals.calls} calls, ${totals.usd:.2f}{of}"
