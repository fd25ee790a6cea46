"""Judge client: returns one usable answer to a question, or raises one `JudgeFailure`.

All questions of a run go through one client, so that its limits, breakers and budget hold for the run. It lives in one
event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import anyio

from pv_judge.answer import Answer, JudgeFailure, Messages, Parser
from pv_judge.asking import Asking
from pv_judge.budget import BudgetKeeper
from pv_judge.completion import Completion, RequestFailed
from pv_judge.config import JudgeConfig
from pv_judge.router import Route, Turn, Turns

__all__ = ["JudgeClient"]

Found: TypeAlias = tuple[Route, Completion, Any]
"""Who answered, what the model wrote, what the parser made of it."""


class JudgeClient:
    """Asks the endpoints of a config, in their order, within limits and budget."""

    def __init__(
        self,
        config: JudgeConfig,
        budget: BudgetKeeper | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        """`clock` gives seconds; the jitter of waiting is drawn from `rng`.

        Raises:
            ConfigError: (a ValueError) a key's environment variable is empty, or a budget in dollars has no max_tokens.
        """
        self.config = config
        self.budget = budget or BudgetKeeper(config.budget, config.prices)
        self._turns = Turns(config, self.budget, clock=clock)
        self._clock = clock
        self._rng = rng or random.Random()
        self._ages = itertools.count()
        self._stopped = False
        self._waiting: set[anyio.CancelScope] = set()
        self._counts: Counter[str] = Counter()

    async def ask(
        self, messages: Messages, parse: Parser | None = None, deadline_s: float | None = None
    ) -> Answer:
        """Ask one question; `deadline_s` is the config's unless given. Without `parse`, the value is the text.

        Raises:
            JudgeFailure: there is no usable answer. It says why, and what was spent.
        """
        allowed_s = self.config.deadline_s if deadline_s is None else deadline_s
        asking = Asking(messages=messages, parse=parse, age=next(self._ages), begin=self._clock())
        self._counts["questions"] += 1
        found: Found | None = None
        try:
            with anyio.move_on_after(allowed_s):
                found = await self._until_answered(asking)
            if found is None:
                raise asking.failure("deadline", f"no usable answer within {allowed_s:g} s")
        except JudgeFailure as failure:
            self._counts[f"failed/{failure.kind}"] += 1
            raise
        self._counts["answers"] += 1
        route, completion, value = found
        return Answer(
            text=completion.text,
            logprobs=completion.logprobs,
            value=value,
            model=route.endpoint.model,
            endpoint=route.endpoint.url,
            usage=asking.usage,
            usd=asking.usd,
            requests=asking.sent,
            latency_s=self._clock() - asking.begin,
        )

    def stop(self) -> None:
        """Send no request any more; what is on its way is waited for, and all else ends with a `deadline`."""
        self._stopped = True
        for scope in self._waiting:
            scope.cancel()

    @property
    def down(self) -> bool:
        """Whether every endpoint is being left alone after failures in a row."""
        return all(not route.breaker.closed for route in self._turns.routes)

    @contextlib.contextmanager
    def _unless_stopped(self) -> Iterator[anyio.CancelScope]:
        """Wait for something, but no longer than until `stop`."""
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                yield scope
            finally:
                self._waiting.discard(scope)

    def counters(self) -> dict[str, int]:
        """Counts since the client was made; what never happened may be missing.

        `questions`, `answers`, and `failed/KIND` for those without one. `requests` that were sent, `failures/KIND` for
        those that failed, `retries` of them after a failure, `hedges` and `hedges_won`, `failovers` to another endpoint
        than the first. `breaker_openings` and `breaker_probes`. `usage_capped`, see `BudgetKeeper.capped`.
        """
        breakers = [route.breaker for route in self._turns.routes]
        return dict(self._counts) | {
            "breaker_openings": sum(one.opened for one in breakers),
            "breaker_probes": sum(one.probes for one in breakers),
            "usage_capped": self.budget.capped,
        }

    async def aclose(self) -> None:
        """Close all connections."""
        for route in self._turns.routes:
            await route.exchange.aclose()

    async def _until_answered(self, asking: Asking) -> Found:
        retries, routes = self.config.retries, self._turns.routes
        while True:
            try:
                turn = await self._turn(asking)
                if self.config.hedging.after_s is None:
                    return await self._request(asking, turn)
                return await self._hedged(asking, turn, self.config.hedging.after_s)
            except RequestFailed as failure:
                kind = failure.kind
            if asking.sent >= retries.attempts or len(asking.without) == len(routes):
                raise asking.failure(kind, "the judge gave no usable answer")
            if asking.begins_round(routes):
                most = retries.backoff_s * 2.0 ** min(asking.rounds - 1, 60)
                with self._unless_stopped():
                    await asyncio.sleep(self._rng.uniform(0.0, min(most, retries.max_backoff_s)))

    async def _turn(self, asking: Asking, *, hedge_of: Turn | None = None) -> Turn:
        """Wait for the next request's turn, first at endpoints that have not failed the question in this round.

        A hedge goes behind all questions, and elsewhere if it can.
        """
        age, passed_over = float(asking.age), set(asking.tried)
        if hedge_of is not None:
            age = math.inf
            passed_over.add(hedge_of.route)
        routes = sorted(self._turns.routes, key=lambda route: route in passed_over)
        with self._unless_stopped() as scope:
            try:
                turn = await self._turns.next(asking.body, age=age, routes=routes, without=asking.without)
            except JudgeFailure as failure:
                asking.status = failure.status or asking.status
                raise asking.failure(failure.kind, str(failure)) from None
        if scope.cancelled_caught or self._stopped:
            if not scope.cancelled_caught:
                turn.close(None)
            raise asking.failure("deadline", "the client was stopped")
        asking.sent += 1
        self._counts["requests"] += 1
        if hedge_of is not None:
            self._counts["hedges"] += 1
        else:
            self._counts["retries"] += asking.sent > 1
            self._counts["failovers"] += turn.route is not self._turns.routes[0]
        return turn

    async def _request(self, asking: Asking, turn: Turn) -> Found:
        """Send one request and close its turn.

        Raises:
            RequestFailed: there is no usable answer; `asking` remembers why.
        """
        route = turn.route
        try:
            completion = await route.exchange.send(turn.body)
        except RequestFailed as failure:
            asking.paid(*turn.close(failure.usage, failure))
            self._failed(asking, route, failure)
            raise
        except BaseException:  # cancelled, or a bug: nothing may stay held
            asking.paid(*turn.abandon())
            raise
        asking.paid(*turn.close(completion.usage))
        try:
            value = asking.parse(completion.text) if asking.parse else completion.text
        except JudgeFailure as unread:
            said = route.exchange.tidy(str(unread))
            failure = RequestFailed(unread.kind, said, usage=completion.usage, text=completion.text)
            self._failed(asking, route, failure)
            raise failure from None
        return route, completion, value

    async def _hedged(self, asking: Asking, turn: Turn, after_s: float) -> Found:
        """Send a request, and a second one if there is no answer after `after_s`; the first usable answer counts."""
        first = asyncio.ensure_future(self._request(asking, turn))
        tasks, sent = {first}, asking.sent
        try:
            await asyncio.wait(tasks, timeout=after_s)
            if not first.done() and sent < self.config.retries.attempts:
                tasks.add(asyncio.ensure_future(self._hedge(asking, turn)))
            pending = tasks
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if not isinstance(task.exception(), RequestFailed | JudgeFailure):
                        self._counts["hedges_won"] += task is not first
                        return task.result()
                if first in done and asking.sent == sent:
                    break  # the hedge still waits for its turn, and would be later than a retry
            return first.result()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(tasks)

    async def _hedge(self, asking: Asking, first: Turn) -> Found:
        return await self._request(asking, await self._turn(asking, hedge_of=first))

    def _failed(self, asking: Asking, route: Route, failure: RequestFailed) -> None:
        self._counts[f"failures/{failure.kind}"] += 1
        asking.failed(route, failure)


async def _end(tasks: set[asyncio.Task[Found]]) -> None:
    """Cancel tasks and wait for them. In Python 3.10 anyio loses a cancellation that comes while it connects."""
    while pending := {task for task in tasks if not task.done()}:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=0.1)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio would log it
