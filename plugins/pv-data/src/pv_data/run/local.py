"""The executor `local`: the chunks of a stage in this process, or in several of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, wait

from pv_data.run.chunk import Job, pending
from pv_data.run.worker import work

__all__ = ["run_local"]

ORPHAN_S = 1.0
"""How often a process looks whether the one that started it is still there."""


def run_local(job: Job, workers: int) -> None:
    """Do what is left of a stage.

    Raises:
        Stopped: the run ends; see `work`.
    """
    if workers == 1:
        asyncio.run(work(job, pending(job), at_once=job.at_once(1)))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(_part, job, part, workers, os.getpid()) for part in range(workers)]
        _all(futures)
    for future in futures:
        future.result()


def _all(futures: list[Future[None]]) -> None:
    """Wait for the processes. Ctrl-C reaches them too, by the terminal; a SIGTERM is handed on."""
    processes = multiprocessing.active_children()

    def hand_on(number: int, _: object) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        wait(futures)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _part(job: Job, part: int, of: int, parent: int) -> None:
    async def main() -> None:
        watching = asyncio.ensure_future(_watch(parent))
        try:
            await work(job, pending(job, part, of), part=part, of=of, at_once=job.at_once(of))
        finally:
            watching.cancel()

    asyncio.run(main())


async def _watch(parent: int) -> None:
    """End with the process that started this one, however it ended: nobody would see what is spent."""
    while os.getppid() == parent:
        await asyncio.sleep(ORPHAN_S)
    os._exit(1)
