"""A judge that is slow, may fail and is asked by so many at a time: what a row waits for its reward (simpy)."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import simpy

__all__ = ["JudgePolicy", "JudgeQueue", "log_normal"]

Draw = Callable[[random.Random], float]
"""Draws seconds."""


def log_normal(median_s: float, sigma: float) -> Draw:
    return lambda rng: rng.lognormvariate(0.0, sigma) * median_s


@dataclass(frozen=True, kw_only=True)
class JudgePolicy:
    """How a judge is asked."""

    latency: Draw
    concurrency: int
    """Requests at the same time, in each worker."""
    workers: int = 1
    """Processes that know nothing of each other; a row goes to any of them."""
    per_minute: float | None = None
    """Requests of the whole run, shared out evenly among the workers."""
    timeout_s: float = 60.0
    """A request that takes longer has failed then."""
    failure_rate: float = 0.0
    """Of the requests that would be answered in time."""
    attempts: int = 1
    """Requests a row at most."""
    backoff_s: float = 0.5
    max_backoff_s: float = 20.0
    deadline_s: float = float("inf")
    """Of a row, waiting for its turn included: then it has failed."""
    batched: bool = False
    """Asked when all rows of a step are there and not as each ends; the trainer waits before it trains."""


class JudgeQueue:
    """The policy at work. `failed` counts rows that got no answer."""

    def __init__(self, env: simpy.Environment, policy: JudgePolicy, rng: random.Random) -> None:
        self.env, self.policy, self.rng = env, policy, rng
        self.slots = [simpy.Resource(env, policy.concurrency) for _ in range(policy.workers)]
        self.starts: list[deque[float]] = [deque() for _ in self.slots]
        self.failed = 0

    def ask(self) -> Iterator[Any]:
        """A process that ends when the row has its reward, or has none for good."""
        begin, worker = self.env.now, self.rng.randrange(self.policy.workers)
        for attempt in range(self.policy.attempts):
            if attempt:
                wait = min(self.policy.backoff_s * 2.0 ** (attempt - 1), self.policy.max_backoff_s)
                yield self.env.timeout(self.rng.uniform(0.0, wait))
            with self.slots[worker].request() as slot:
                yield slot
                yield from self._minute(worker)
                left = begin + self.policy.deadline_s - self.env.now
                seconds = self.policy.latency(self.rng)
                answered = seconds <= self.policy.timeout_s and self.rng.random() >= self.policy.failure_rate
                allowed = min(seconds, self.policy.timeout_s)
                yield self.env.timeout(max(0.0, min(allowed, left)))
                if answered and allowed <= left:
                    return
                if allowed >= left:
                    break
        self.failed += 1

    def _minute(self, worker: int) -> Iterator[Any]:
        """Wait until a request fits into the last 60 seconds, and take its place."""
        if self.policy.per_minute is None:
            return
        starts, most = self.starts[worker], max(1, int(self.policy.per_minute / self.policy.workers))
        begin = max(self.env.now, starts[-most] + 60.0) if len(starts) >= most else self.env.now
        starts.append(begin)
        yield self.env.timeout(begin - self.env.now)
