"""Stage progress: questions, money and time, read from the run's files, so that it is the same for every executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
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

from pv_data.run.folder import answers_path, spent
from pv_data.run.stage import Job, is_done, pending
from pv_judge.cache import AnswerCache, CacheUnavailable

__all__ = ["shown"]


EVERY_S = 1.0
PLAIN_S = 30.0
"""Without a terminal: a line this often."""
LOOKED_AT = 256
"""Chunks that are looked at each time, the first that are still to be done."""


@contextmanager
def shown(job: Job, budget_usd: float | None, console: Console) -> Iterator[None]:
    """Show a stage's progress for as long as this lasts, in questions."""
    with closing(_Done(job)) as done:
        if console.is_terminal:
            with _bar(job, budget_usd, console, done.of, done.look):
                yield
        else:
            with _lines(job, budget_usd, console, done.of, done.look):
                yield


class _Done:
    """How many questions of a stage are done: those of chunks that are written, and answers that have come since."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._left = [(chunk, job.questions(chunk)) for chunk in pending(job)]
        self.of, self._written = sum(questions for _, questions in self._left), 0
        models = [job.config.models[name] for name in job.models]
        paths = {model.cache or str(answers_path(job.run)) for model in models}
        self._caches = list[AnswerCache]()
        with suppress(CacheUnavailable):  # a disk of another machine
            for path in sorted(paths):
                self._caches.append(AnswerCache(path))
        self._before = self._kept()

    def look(self) -> int:
        """The larger of both: an answer may have been there, and a question have none that is of use."""
        for item in self._left[:LOOKED_AT]:
            if is_done(self._job, item[0]):
                self._left.remove(item)
                self._written += item[1]
        return max(self._written, min(self.of, self._kept() - self._before))

    def close(self) -> None:
        """Close the files."""
        for cache in self._caches:
            cache.close()

    def _kept(self) -> int:
        with suppress(CacheUnavailable):
            return sum(cache.count() for cache in self._caches)
        return 0


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
    known = of or totals.usd  # 0 may be of models without a price
    return f"{totals.calls} calls" + (f", ${totals.usd:.2f}{of}" if known else "")
