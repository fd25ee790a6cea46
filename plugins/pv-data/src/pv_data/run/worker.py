"""Stage worker: one process that does several chunks at a time and writes each when it is done."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pv_data.asking.asker import Stopped
from pv_data.run.stage import Job, open_resources, pending, write
from pv_judge.processes import in_loop

__all__ = ["gather_all", "root_cause", "run_shard"]

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAME_SIGNAL_S = 1.0
"""Signals within this time count as one: a terminal and a parent process may both send it."""


async def run_shard(
    job: Job,
    part: int = 0,
    of: int = 1,
    money: float = 1.0,
    *,
    signals: Sequence[signal.Signals] = SIGNALS,
) -> None:
    """Do the chunks of one of `of` shards of a stage until none is left, or one fails.

    After a first Ctrl-C (or SIGTERM) the worker sends no more requests and waits for those on their way; after a second
    it does not wait.

    Args:
        job: the stage.
        part: number of the shard, from 0.
        of: number of shards.
        money: the shard's share of the remaining budget.
        signals: that interrupt it.

    Raises:
        Stopped: the run ends. Answers that were on their way have been kept; their chunk is not written.
    """
    chunks = pending(job, part, of)
    async with open_resources(job, part, of, money) as resources:
        do = job.work(resources)

        async def lane() -> None:  # takes the next chunk when it is free; all lanes share the iterator
            try:
                for chunk in chunks:
                    made = await do(chunk)
                    await asyncio.to_thread(write, job, chunk, made)
            except BaseException as error:
                resources.stop(str(error) or type(error).__name__)
                raise

        lanes = [asyncio.ensure_future(lane()) for _ in range(job.at_once(of))]
        with _interrupts(signals, lambda: resources.stop("it was interrupted"), lanes):
            ends = await asyncio.gather(*lanes, return_exceptions=True)
    error = root_cause([end for end in ends if isinstance(end, BaseException)])
    if isinstance(error, asyncio.CancelledError):
        raise Stopped("it was interrupted twice; requests that were on their way are sent again") from None
    if error is not None:
        raise error


async def gather_all(tasks: Iterable[Awaitable[T]]) -> list[T]:
    """Like `asyncio.gather`, but waits for every task, since its answer is paid for, and raises the root cause."""
    results = await asyncio.gather(*tasks, return_exceptions=True)
    if error := root_cause([one for one in results if isinstance(one, BaseException)]):
        raise error
    return [one for one in results if not isinstance(one, BaseException)]


def root_cause(errors: Iterable[BaseException]) -> BaseException | None:
    """The first error that is neither a stop nor a cancellation, which follow from it; else the first stop."""

    def follows(error: BaseException) -> int:
        return 2 if isinstance(error, asyncio.CancelledError) else int(isinstance(error, Stopped))

    return min(errors, key=follows, default=None)


@contextlib.contextmanager
def _interrupts(
    signals: Sequence[signal.Signals], first: Callable[[], object], lanes: Sequence[asyncio.Future[None]]
) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    seen: list[float] = []

    def interrupted() -> None:
        if not seen:
            seen.append(loop.time())
            first()
        elif loop.time() > seen[0] + SAME_SIGNAL_S:
            for lane in lanes:
                lane.cancel()

    with in_loop(signals, interrupted):
        yield
