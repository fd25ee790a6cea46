"""One process at work on a stage: several chunks at a time, each written when it is done."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence

from pv_data.asking.asker import Stopped
from pv_data.run.chunk import Chunk, Job, Work, write
from pv_data.run.together import cause

__all__ = ["work"]

ONE_WISH_S = 1.0
"""Signals that come together are one: a terminal and a parent may both send it."""


async def work(
    job: Job,
    chunks: Iterator[Chunk],
    *,
    part: int = 0,
    of: int = 1,
    money: float = 1.0,
    at_once: int = 4,
    signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
) -> None:
    """Do chunks until there are none left, or one fails.

    A first Ctrl-C (or SIGTERM) sends nothing any more and waits for what is on its way; a second does not wait.

    Args:
        job: the stage.
        chunks: those of this process.
        part: which of the processes this is, from 0.
        of: how many there are.
        money: the part that it has of what is left.
        at_once: chunks in the works together, so that the last questions of one do not hold up the next.
        signals: that interrupt it.

    Raises:
        Stopped: the run ends. What was on its way has been kept; its chunk is not written.
    """
    async with job.opened(part, of, money) as opened:
        # Each takes the next chunk when it is free; all read the same iterator.
        lanes = [asyncio.ensure_future(_lane(job, opened, chunks)) for _ in range(at_once)]
        with _interrupts(signals, lambda: opened.stop("it was interrupted"), lanes):
            ends = await asyncio.gather(*lanes, return_exceptions=True)
    error = cause([end for end in ends if isinstance(end, BaseException)])
    if isinstance(error, asyncio.CancelledError):
        raise Stopped("it was interrupted twice; what was on its way is asked again") from None
    if error is not None:
        raise error


async def _lane(job: Job, opened: Work, chunks: Iterator[Chunk]) -> None:
    try:
        for chunk in chunks:
            done = await opened.do(chunk)
            await asyncio.to_thread(write, job, chunk, done)
    except BaseException as error:
        opened.stop(str(error) or type(error).__name__)
        raise


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
        elif loop.time() > seen[0] + ONE_WISH_S:
            for lane in lanes:
                lane.cancel()

    before = {}
    with contextlib.suppress(RuntimeError, ValueError):  # not the main thread: somebody else handles signals
        for number in signals:
            handler = signal.getsignal(number)
            loop.add_signal_handler(number, interrupted)
            before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)  # which leaves the default and not what was there
            signal.signal(number, handler)
