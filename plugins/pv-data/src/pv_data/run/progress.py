"""Stage progress: questions, money and time, read from the run's files, so that it is the same for every executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
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

from pv_data.asking.kept_answers import INSTEAD
from pv_data.run.folder import answers_path, spent
from pv_data.run.stage import Job, is_done, pending
from pv_judge.cache import AnswerCache, CacheUnavailable
from pv_judge.pages.text import plural

__all__ = ["shown"]


EVERY_S = 1.0
PLAIN_S = 30.0
"""Without a terminal: a line this often."""
LOOKED_AT = 256
"""Chunks that are checked each time: the first ones that are not done."""
COLUMNS = (
    *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
    *(TextColumn("{task.fields[money]}"), TimeElapsedColumn(), TimeRemainingColumn()),
)


@contextmanager
def shown(job: Job, budget_usd: float | None, console: Console) -> Iterator[None]:
    """Show a stage's progress in questions until the block ends: a bar on a terminal, else a line now and then."""
    begin = time.monotonic()
    with closing(_Done(job)) as done:
        if console.is_terminal:
            with Progress(*COLUMNS, console=console) as bar:
                task = bar.add_task(job.stage, total=done.of, money="")
                money = partial(_money, job.run, budget_usd)
                with _each(EVERY_S, lambda: bar.update(task, completed=done.look(), money=money())):
                    yield
            return

        def line() -> None:
            count, took = done.look(), time.monotonic() - begin
            left = f", about {(done.of - count) * took / count / 60:.0f} min left" if count else ""
            said = f"{count} of {plural(done.of, 'question')}, {_money(job.run, budget_usd)}{left}"
            console.print(f"{job.stage}: {said}", highlight=False)

        with _each(PLAIN_S, line):
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
                self._caches.append(AnswerCache(path, instead=INSTEAD))
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
    return f"{plural(totals.calls, 'call')}" + (f", ${totals.usd:.2f}{of}" if known else "")
