"""Progress of the sampling: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from pv_eval.verifiers.asked import Progress

__all__ = ["said", "shown"]

EVERY_S = 0.5
PLAIN_S = 30.0
"""Without a terminal: a line this often."""


@contextmanager
def shown(state: Progress, console: Console) -> Iterator[None]:
    """Show `state` for as long as this lasts."""
    ended = threading.Event()
    begin = time.monotonic()
    show = _bar if console.is_terminal else _lines
    thread = threading.Thread(target=show, args=(state, console, ended, begin), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def said(state: Progress, seconds: float) -> str:
    """Cost, failures and time left, in words."""
    parts = [f"{state.calls} requests" + ("" if state.usd is None else f", ${state.usd:.2f}")]
    if state.known:
        parts.insert(0, f"{state.known} known before")
    if state.failures:
        parts.append("; ".join(f"{reason} {number}" for reason, number in state.failures.most_common()))
    asked, left = state.done - state.known, state.total - state.done
    if state.stopping:
        parts.append("stopping: waiting for what is under way, Ctrl-C again leaves at once")
    elif asked and left:
        parts.append(f"about {_duration(left * seconds / asked)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _bar(state: Progress, console: Console, ended: threading.Event, begin: float) -> None:
    columns = (TextColumn("sampling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, TextColumn("{task.fields[said]}", markup=False), console=console) as bar:
        task = bar.add_task("sampling", total=state.total or None, said="")
        while True:
            last = ended.wait(EVERY_S)
            text = said(state, time.monotonic() - begin)
            bar.update(task, total=state.total or None, completed=state.done, said=text)
            if last:
                return


def _lines(state: Progress, console: Console, ended: threading.Event, begin: float) -> None:
    while True:
        last = ended.wait(PLAIN_S)
        text = f"sampling: {state.done} of {state.total} traces, {said(state, time.monotonic() - begin)}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
        if last:
            return
