"""The executor `local`: the chunks of a stage in this process, or in several of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event

from pv_data.asking.asker import Stopped
from pv_data.run.chunk import Job, moneys, pending
from pv_data.run.together import cause
from pv_data.run.worker import work

__all__ = ["run_local"]

LOOK_S = 1.0
"""How often a process looks whether the one that started it is still there, and whether another is broken."""
BROKEN: Event | None = None
"""In each of several processes: whether something has gone wrong in one of them."""


def run_local(job: Job, workers: int) -> None:
    """Do what is left of a stage.

    Raises:
        Stopped: the run ends; see `work`.
    """
    if workers == 1:
        asyncio.run(work(job, pending(job), at_once=job.at_once(1)))
        return
    context = multiprocessing.get_context("spawn")
    broken = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(broken,)) as pool:
        money, mine = moneys(job, workers), os.getpid()
        futures = [pool.submit(_part, job, part, workers, money[part], mine) for part in range(workers)]
        _all(futures, broken)
    if error := cause([error for future in futures if (error := future.exception())]):
        if isinstance(error, BrokenProcessPool):
            raise Stopped("a process of the run was killed; what it had kept is kept") from error
        raise error


def _begin(broken: Event) -> None:
    global BROKEN
    BROKEN = broken


def _all(futures: list[Future[None]], broken: Event) -> None:
    """Wait for the processes. They do not hear Ctrl-C, which a terminal sends to all: it is handed on, as SIGTERM.

    What goes wrong in one of them, other than a stop, ends the others in the same way.
    """
    processes = multiprocessing.active_children()

    def hand_on(*_: object) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGTERM)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
        if any(not isinstance(one.exception(), Stopped | None) for one in ended):
            broken.set()
        wait(futures)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _part(job: Job, part: int, of: int, money: float, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def main() -> None:
        watching = asyncio.ensure_future(_watch(parent))
        try:
            chunks, lanes = pending(job, part, of), job.at_once(of)
            await work(job, chunks, part=part, of=of, money=money, at_once=lanes, signals=[signal.SIGTERM])
        finally:
            watching.cancel()

    asyncio.run(main())


async def _watch(parent: int) -> None:
    """End with the process that started this one, however it ended: nobody would see what is spent. And stop, as by
    Ctrl-C, when another one is broken."""
    stopped = False
    while os.getppid() == parent:
        if not stopped and BROKEN is not None and BROKEN.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
            stopped = True
        await asyncio.sleep(LOOK_S)
    os._exit(1)
