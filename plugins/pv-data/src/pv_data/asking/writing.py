"""Answers on their way to the disk: all that come while one commit runs go into the next, together."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

from pv_rl.judge.cache import AnswerCache, CachedAnswer, CacheUnavailable

__all__ = ["Writer"]

logger = logging.getLogger("pv_rl")

LOCKED_S = 300.0
"""So long another process may hold the file, a copy of it for example, before an answer is given up."""


class Writer:
    """Keeps answers in a cache that several processes write, without a wait for them on the event loop.

    It has a connection of its own: who reads through another one does not wait for a commit.
    """

    def __init__(self, path: str | Path) -> None:
        self._cache = AnswerCache(path)
        self._waiting: dict[str, CachedAnswer] = {}
        self._next: asyncio.Task[None] | None = None
        """The commit of what is waiting."""
        self._commits: set[asyncio.Task[None]] = set()
        self._at_work = asyncio.Lock()

    async def put(self, key: str, answer: CachedAnswer) -> None:
        """Returns when the answer is on disk, which it will be though this is cancelled.

        Raises:
            CacheUnavailable: it could not be kept.
        """
        self._waiting[key] = answer
        if self._next is None:
            self._next = asyncio.ensure_future(self._commit())
            self._commits.add(self._next)
            self._next.add_done_callback(self._ended)
        await asyncio.shield(self._next)

    async def aclose(self) -> None:
        """Wait for what is on its way, whose askers may be gone, and close the file."""
        while self._commits:
            await asyncio.wait(self._commits)
        self._cache.close()

    async def _commit(self) -> None:
        async with self._at_work:
            answers, self._waiting, self._next = self._waiting, {}, None
            deadline = time.monotonic() + LOCKED_S
            while True:
                try:
                    return await asyncio.to_thread(self._cache.put_all, answers)
                except CacheUnavailable as error:
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise
                    logger.warning("%s; trying again", error)

    def _ended(self, commit: asyncio.Task[None]) -> None:
        self._commits.discard(commit)
        if not commit.cancelled() and (error := commit.exception()):
            logger.error("%s", error)  # also where nobody waits for it any more
