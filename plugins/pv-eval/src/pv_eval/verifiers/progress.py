"""Progress of the sampling: a bar in a terminal, elsewhere a line every half minute."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from pv_judge.pages.text import plural

__all__ = ["Progress", "shown", "state_of"]

EVERY_S = 0.5
PLAIN_S = 30.0
"""Without a terminal: a line this often."""


@dataclass(kw_only=True)
class Progress:
    """State of the sampling."""

    total: int = 0
    done: int = 0
    known: int = 0
    """Of those done: they were in the cache."""
    failures: Counter[str] = field(default_factory=Counter)
    """Of those done: traces that did not end by themselves, by the reason."""
    last_error: str = ""
    """Of the last request that failed, with the server's words."""
    usd: float | None = 0.0
    """None: a model without a price was asked."""
    calls: int = 0
    """Requests that this command sent."""
    tokens: int = 0
    stopping: bool = False
    """No more requests are sent."""


@contextmanager
def shown(state: Progress, console: Console) -> Iterator[None]:
    """Show `state` for the length of the block."""
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


def state_of(state: Progress, seconds: float) -> str:
    """Cost, failures and time left, in words."""
    parts = [f"{plural(state.calls, 'request')}" + ("" if state.usd is None else f", ${state.usd:.2f}")]
    if state.known:
        parts.insert(0, f"{state.known} from the cache")
    if state.failures:
        parts.append("; ".join(f"{reason} {number}" for reason, number in state.failures.most_common()))
    asked, left = state.done - state.known, state.total - state.done
    if state.stopping:
        parts.append("stopping: waiting for the requests in flight, press Ctrl-C again to leave at once")
    elif asked and left:
        s = left * seconds / asked
        parts.append(f"about {f'{s:.0f} s' if s < 100 else f'{s / 60:.0f} min'} left")
    return ", ".join(parts)


def _bar(state: Progress, console: Console, ended: threading.Event, begin: float) -> None:
    columns = (TextColumn("sampling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, TextColumn("{task.fields[state]}", markup=False), console=console) as bar:
        task = bar.add_task("sampling", total=state.total or None, state="")
        last = False
        while not last:
            last = ended.wait(EVERY_S)
            text = state_of(state, time.monotonic() - begin)
            bar.update(task, total=state.total or None, completed=state.done, state=text)


def _lines(state: Progress, console: Console, ended: threading.Event, begin: float) -> None:
    last = False
    while not last:
        last = ended.wait(PLAIN_S)
        text = state_of(state, time.monotonic() - begin)
        line = f"sampling: {state.done} of {plural(state.total, 'trace')}, {text}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
