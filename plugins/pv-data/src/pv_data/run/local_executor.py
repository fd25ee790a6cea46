"""Local executor: does the chunks of a stage in this process, or in several processes of this machine."""

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
from pv_data.run.stage import Job, budget_shares
from pv_data.run.worker import root_cause, run_shard

__all__ = ["run_local"]

WATCH_S = 1.0
"""How often a worker process checks that its parent still runs, and that no other worker has failed."""
FAILED: Event | None = None
"""In each worker process: whether one of them has failed."""


def run_local(job: Job, workers: int) -> None:
    """Do what is left of a stage.

    Raises:
        Stopped: the run ends; see `pv_data.run.worker.run_shard`.
    """
    if workers == 1:
        asyncio.run(run_shard(job))
        return
    context = multiprocessing.get_context("spawn")
    failed = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(failed,)) as pool:
        money, parent = budget_shares(job, workers), os.getpid()
        futures = [pool.submit(_part, job, part, workers, money[part], parent) for part in range(workers)]
        _wait(futures, failed)
    if error := root_cause([error for future in futures if (error := future.exception())]):
        if isinstance(error, BrokenProcessPool):
            raise Stopped("a process of the run was killed; what it had kept is kept") from error
        raise error


def _begin(failed: Event) -> None:
    global FAILED
    FAILED = failed


def _wait(futures: list[Future[None]], failed: Event) -> None:
    """Wait for the worker processes. They ignore Ctrl-C, which a terminal sends to all processes: the parent passes it
    on as SIGTERM. An error in one worker, other than a stop, stops the others in the same way.
    """
    processes = multiprocessing.active_children()

    def pass_on(*_: object) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGTERM)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
        if any(not isinstance(one.exception(), Stopped | None) for one in ended):
            failed.set()
        wait(futures)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _part(job: Job, part: int, of: int, money: float, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def main() -> None:
        watching = asyncio.ensure_future(_watch(parent))
        try:
            await run_shard(job, part, of, money, signals=[signal.SIGTERM])
        finally:
            watching.cancel()

    asyncio.run(main())


async def _watch(parent: int) -> None:
    """End with the parent, however it ended: nobody would see what a worker spends. Stop, as by Ctrl-C, when another
    worker has failed."""
    stopped = False
    while os.getppid() == parent:
        if not stopped and FAILED is not None and FAILED.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
            stopped = True
        await asyncio.sleep(WATCH_S)
    os._exit(1)
