"""Rate limiter of one endpoint: adaptive concurrency, a sliding window for requests and tokens per minute, pauses."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pv_judge.config import Limits, Retries

__all__ = ["RateLimiter", "SlidingWindow", "Slot"]

MINUTE_S = 60.0


@dataclass(eq=False)
class Slot:
    """A concurrency slot, and its request's share of the minute. The first `done` or `unused` gives it back."""

    limiter: RateLimiter
    at: float
    tokens: float
    """Estimated, then as the server counts them."""
    era: int
    held: bool = True

    def done(self, tokens: int | None = None, *, answered: bool = False, overload: bool = False) -> None:
        """The request ended, having taken `tokens` (None: unknown).

        `answered`: with an answer; `overload`: with 429 or 503.
        """
        if self.held:
            self.held = False
            self.limiter._done(self, tokens, answered=answered, overload=overload)

    def unused(self) -> None:
        """No request was sent."""
        if self.held:
            self.held = False
            self.limiter._unused(self)


class SlidingWindow:
    """Sliding-window log of the requests and tokens of the last 60 seconds. `now` is in seconds, by any clock."""

    def __init__(self, limits: Limits) -> None:
        self._requests = limits.requests_per_minute or math.inf
        self._tokens = limits.tokens_per_minute or math.inf
        self._limited = self._requests < math.inf or self._tokens < math.inf
        self._log: deque[Slot] = deque()
        self._sum = 0.0

    def wait_s(self, tokens: float, now: float) -> float:
        """Seconds until the log may have room for a request of `tokens`; 0: it has room now."""
        while self._log and self._log[0].at <= now - MINUTE_S:
            self._sum -= self._log.popleft().tokens
        if not self._log:
            return 0.0  # also for a request above the limit, which would never fit
        room = len(self._log) + 1 <= self._requests and self._sum + tokens <= self._tokens
        return 0.0 if room else self._log[0].at + MINUTE_S - now

    def add(self, slot: Slot) -> None:
        """Log a request that is sent now."""
        if self._limited:
            self._log.append(slot)
            self._sum += slot.tokens

    def correct(self, slot: Slot, tokens: float, now: float) -> None:
        """Replace the estimate of a request by the server's count."""
        if self._limited and slot.at > now - MINUTE_S:
            self._sum += tokens - slot.tokens
            slot.tokens = tokens

    def remove(self, slot: Slot) -> None:
        """Take back a request that was not sent."""
        if slot in self._log:
            self._log.remove(slot)
            self._sum -= slot.tokens


class RateLimiter:
    """Gives slots to requests in order of their age.

    An overload halves the concurrency, once for all requests in flight at the time. As many answers as the concurrency
    raise it by one. If it cannot be halved, overloads pause the endpoint for longer and longer, until an answer comes.
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
        self._window = SlidingWindow(limits)
        self._answers = 0  # since the concurrency last changed
        self._era = 0  # goes up with each overload that counts
        self._pauses = 0  # since the last answer
        self._paused_until = -math.inf
        self._queue: list[tuple[float, int, float, asyncio.Future[Slot | None]]] = []
        self._ticket = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return sum(not entry[-1].done() for entry in self._queue)

    def pause(self, seconds: float) -> None:
        """Give no slot for `seconds`. Requests that wait get None and can go to another endpoint."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)
        waiting, self._queue = self._queue, []
        for *_, future in sorted(waiting, key=lambda entry: entry[:2]):
            if not future.done():
                future.set_result(None)

    def pause_left_s(self) -> float:
        """Seconds until the pause is over."""
        return max(0.0, self._paused_until - self._clock())

    async def acquire(self, tokens: float, age: float = 0.0) -> Slot | None:
        """Wait for a slot for a request that may take `tokens`; None if the endpoint is paused.

        The smallest `age` goes first, then the request that came first. A cancelled request gives its slot back.
        """
        if self.pause_left_s() > 0:
            return None
        future: asyncio.Future[Slot | None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (age, next(self._ticket), tokens, future))
        self._give()
        if future.done():
            return future.result()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and (slot := future.result()):
                slot.unused()
            self._give()
            raise

    def _give(self) -> None:
        now = self._clock()
        while self._queue and self.in_flight < self.concurrency:
            _, _, tokens, future = self._queue[0]
            if not future.done():
                wait = self._window.wait_s(tokens, now)
                if wait > 0:
                    self._call_in(wait)
                    return
                self.in_flight += 1
                slot = Slot(self, now, tokens, self._era)
                self._window.add(slot)
                future.set_result(slot)
            heapq.heappop(self._queue)

    def _call_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._give)

    def _done(self, slot: Slot, tokens: int | None, *, answered: bool, overload: bool) -> None:
        self.in_flight -= 1
        if tokens is not None:
            self._window.correct(slot, tokens, self._clock())
        if overload and slot.era == self._era:
            self._era += 1
            self._slow_down()
        elif answered:
            self._pauses = 0
            self._answers += 1
            if self._answers >= self.concurrency and self.concurrency < self._limits.concurrency:
                self.concurrency += 1
                self._answers = 0
        self._give()

    def _slow_down(self) -> None:
        self._answers = 0
        if self._limits.adaptive and self.concurrency > 1:
            self.concurrency //= 2
        else:
            most = self._retries.max_backoff_s
            self.pause(min(most, self._retries.backoff_s * 2.0 ** min(self._pauses, 60)))
            self._pauses += 1

    def _unused(self, slot: Slot) -> None:
        self.in_flight -= 1
        self._window.remove(slot)
        self._give()
