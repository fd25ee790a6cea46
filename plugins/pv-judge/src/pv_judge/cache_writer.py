"""Group commit for a cache file: all answers that come while one commit runs go into the next one, together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pv_judge.cache import AnswerCache, CachedAnswer, CacheUnavailable

__all__ = ["CacheWriter"]

logger = logging.getLogger("pv_rl")

LOCKED_S = 300.0
"""An answer is given up after another process, a backup for example, has held the file for so long."""
GATHER_S = 0.01
"""A commit waits so long for further answers: a tenth less CPU for each at 200 a second (benchmarks/README.md)."""


class CacheWriter:
    """Writes answers to a cache that several processes share, and never blocks the event loop.

    It has a thread and a connection of its own. A busy event loop is late for each step, so an answer takes only one
    there: when it is on disk.
    """

    def __init__(self, path: str | Path, *, instead: str = "name another file in judge.cache") -> None:
        """See `AnswerCache`."""
        self.cache = AnswerCache(
            path, instead=instead, rest_s=0.0
        )  # one commit waits for the file, not each answer
        self._queue: queue.SimpleQueue[_Put | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="answers", daemon=True)
        self._thread.start()

    def put(self, key: str, answer: CachedAnswer) -> asyncio.Future[None]:
        """A future that is done when the answer is on disk. The answer is written also if nobody waits for it.

        The future raises:
            CacheUnavailable: it could not be kept.
        """
        if not self._thread.is_alive():
            raise RuntimeError("the writer is closed")
        put = _Put(key=key, answer=answer, kept=asyncio.get_running_loop().create_future())
        self._queue.put(put)
        return put.kept

    async def aclose(self) -> None:
        """Write all answers that were put, and close the file."""
        self._queue.put(None)
        try:
            await asyncio.to_thread(self._thread.join)
        finally:
            self.cache.close()

    def _work(self) -> None:
        """The thread: one commit after the other."""
        going = True
        while going:
            came = [self._queue.get()]
            time.sleep(GATHER_S)
            with contextlib.suppress(queue.Empty):
                while True:
                    came.append(self._queue.get_nowait())
            going = None not in came
            puts = [one for one in came if one is not None]
            if puts:
                error = self._commit({put.key: put.answer for put in puts})
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                    puts[0].kept.get_loop().call_soon_threadsafe(_settle, puts, error)

    def _commit(self, answers: dict[str, CachedAnswer]) -> Exception | None:
        """The error, if the answers could not be kept."""
        deadline = time.monotonic() + LOCKED_S
        while True:
            try:
                self.cache.put_all(answers)
            except CacheUnavailable as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    logger.error("%s", error)  # the caller may be gone
                    return error
                logger.warning("%s; trying again", error)
            except Exception as error:  # a bug, which must not end the thread
                logger.exception("an answer could not be kept")
                return error
            else:
                return None


@dataclass(frozen=True, kw_only=True)
class _Put:
    """An answer that waits for a commit."""

    key: str
    answer: CachedAnswer
    kept: asyncio.Future[None]
    """Done when it is on disk."""


def _settle(puts: list[_Put], error: Exception | None) -> None:
    for put in puts:
        if put.kept.done():  # cancelled
            continue
        if error is None:
            put.kept.set_result(None)
        else:
            put.kept.set_exception(error)
