"""What is asked of one endpoint at most: at the same time, in a minute, and not at all while it says to wait."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from collections.abc import Callable

from pv_judge.config import Limits, Retries
from pv_judge.rate_window import Charge, Window

__all__ = ["EndpointLimits", "Slot"]


class Slot:
    """A place among the requests in flight. Give it back by `done` or `unused`; more than once does no harm."""

    def __init__(self, owner: EndpointLimits, charge: Charge, era: int) -> None:
        self._owner = owner
        self._charge = charge
        self._era = era
        self._held = True

    def done(self, tokens: int | None = None, *, answered: bool = False, overload: bool = False) -> None:
        """The request ended, having taken `tokens` (None: nobody knows).

        `answered`: with an answer; `overload`: with 429 or 503.
        """
        if self._held:
            self._held = False
            self._owner._done(self._charge, self._era, tokens, answered=answered, overload=overload)

    def unused(self) -> None:
        """Nothing was sent."""
        if self._held:
            self._held = False
            self._owner._unused(self._charge)


class EndpointLimits:
    """Lets requests through in order of their age.

    An overload halves the concurrency, once for all requests that were in flight at the time; as many answers as it
    allows requests let it grow by one. Where it cannot be halved, overloads pause the endpoint for longer and longer,
    until there is an answer.
    """

    def __init__(
        self,
        limits: Limits,
        retries: Retries = Retries(),  # noqa: B008 - frozen
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The pauses are those of `retries`, without its jitter."""
        self.concurrency = limits.concurrency
        """Requests that may be in flight now."""
        self.in_flight = 0
        self._limits = limits
        self._retries = retries
        self._clock = clock
        self._window = Window(limits)
        self._answers = 0  # since the concurrency last changed
        self._era = 0  # goes up with each overload that counts
        self._pauses = 0  # since the last answer
        self._paused_until = -math.inf
        self._queue: list[tuple[float, int, float, asyncio.Future[Slot | None]]] = []
        self._ticket = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return sum(not entry[-1].done() for entry in self._queue)

    def pause(self, seconds: float) -> None:
        """Let nothing through for so long. Those that wait get None, so that they can go elsewhere."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)
        waiting, self._queue = self._queue, []
        for *_, future in sorted(waiting, key=lambda entry: entry[:2]):
            if not future.done():
                future.set_result(None)

    def pause_left_s(self) -> float:
        """Seconds until the pause is over."""
        return max(0.0, self._paused_until - self._clock())

    async def acquire(self, tokens: float, age: float = 0.0) -> Slot | None:
        """Wait for a place for a request that may take `tokens`; None if the endpoint is paused.

        The smallest `age` goes first, then who came first. Who is cancelled gives the place back.
        """
        if self.pause_left_s() > 0:
            return None
        future: asyncio.Future[Slot | None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (age, next(self._ticket), tokens, future))
        self._let_through()
        if future.done():
            return future.result()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and (slot := future.result()):
                slot.unused()
            self._let_through()
            raise

    def _let_through(self) -> None:
        now = self._clock()
        while self._queue and self.in_flight < self.concurrency:
            _, _, tokens, future = self._queue[0]
            if not future.done():
                wait = self._window.wait_s(tokens, now)
                if wait > 0:
                    self._call_in(wait)
                    return
                self.in_flight += 1
                future.set_result(Slot(self, self._window.take(tokens, now), self._era))
            heapq.heappop(self._queue)

    def _call_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._let_through)

    def _done(self, charge: Charge, era: int, tokens: int | None, *, answered: bool, overload: bool) -> None:
        self.in_flight -= 1
        if tokens is not None:
            self._window.correct(charge, tokens, self._clock())
        if overload and era == self._era:
            self._era += 1
            self._slow_down()
        elif answered:
            self._pauses = 0
            self._answers += 1
            if self._answers >= self.concurrency and self.concurrency < self._limits.concurrency:
                self.concurrency += 1
                self._answers = 0
        self._let_through()

    def _slow_down(self) -> None:
        self._answers = 0
        if self._limits.adaptive and self.concurrency > 1:
            self.concurrency //= 2
        else:
            most = self._retries.max_backoff_s
            self.pause(min(most, self._retries.backoff_s * 2.0 ** min(self._pauses, 60)))
            self._pauses += 1

    def _unused(self, charge: Charge) -> None:
        self.in_flight -= 1
        self._window.remove(charge)
        self._let_through()
