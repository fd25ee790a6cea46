"""LLM client: returns one usable answer to a question, or raises one `JudgeFailure`.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from pv_judge.answer import ANSWERED, Answer, FailureKind, JudgeFailure, Messages, Parser, Usage
from pv_judge.budget import BudgetKeeper
from pv_judge.completion import Completion, RequestFailed
from pv_judge.config import JudgeConfig
from pv_judge.pages.text import plural
from pv_judge.router import Lease, RequestRouter, Route

__all__ = ["JudgeClient"]

AGAIN: frozenset[FailureKind] = frozenset(
    {
        *("connect", "timeout", "reset", "rate_limited", "server_error"),
        *("bad_response", "invalid_json", "wrong_schema"),
    }
)
"""The same endpoint may answer a later request. After any other failure, only another endpoint is asked."""

Found: TypeAlias = tuple[Route, Completion, Any]
"""The endpoint that answered, what the model wrote, and what the parser made of it."""


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
        self.router = RequestRouter(config, self.budget, clock=clock)
        self._clock = clock
        self._rng = rng or random.Random()
        self._ages = itertools.count()
        self._stopped = False
        self._waiting: set[anyio.CancelScope] = set()
        self._counts: Counter[str] = Counter()

    async def ask(
        self,
        messages: Messages,
        parse: Parser | None = None,
        deadline_s: float | None = None,
        *,
        seed: Callable[[int], int] | None = None,
        earlier: JudgeFailure | None = None,
        on_unusable: Callable[[JudgeFailure], object] = lambda failure: None,
    ) -> Answer:
        """Ask one question.

        Args:
            messages: of the request.
            parse: from the text of an answer to its value; without it, the value is the text.
            deadline_s: in the place of the config's.
            seed: gives the field `seed` of a request, by the number of unusable answers (`ANSWERED`) before it.
            earlier: the last unusable answer of an earlier run that was interrupted at this question. Its requests
                count as attempts, and its usage is part of the result's.
            on_unusable: is called after each unusable answer, with a failure that sums up all so far.

        Raises:
            JudgeFailure: there is no usable answer. It says why, and what was spent.
        """
        allowed_s = self.config.deadline_s if deadline_s is None else deadline_s
        asking = _Asking(
            messages=messages,
            parse=parse,
            seed=seed,
            on_unusable=on_unusable,
            age=next(self._ages),
            begin=self._clock(),
        )
        if earlier is not None:
            asking.sent = asking.unusable = earlier.requests
            asking.usage = earlier.usage
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
        """Send no further request. Requests in flight are waited for; all other questions fail with `deadline`."""
        self._stopped = True
        for scope in self._waiting:
            scope.cancel()

    @property
    def down(self) -> bool:
        """Whether the circuit breaker of every endpoint is open."""
        return all(not route.breaker.closed for route in self.router.routes)

    @property
    def failures(self) -> str:
        """The last failed request of each endpoint, by URL."""
        return "; ".join(f"{one.endpoint.url}: {one.failure}" for one in self.router.routes if one.failure)

    @property
    def refusals(self) -> dict[str, str]:
        """Endpoints whose last two requests or more were refused for the key, the account, the address or the model's
        name, by URL, and what they said."""
        return {one.endpoint.url: one.refused[1] for one in self.router.routes if one.refused[0] >= 2}

    def counters(self) -> dict[str, int]:
        """Counts since the client was made; a name whose count is 0 may be missing.

        `questions`, `answers`, and `failed/KIND` for those without one. `requests` that were sent, `failures/KIND` for
        those that failed, `retries` of them after a failure, `hedges` and `hedges_won`, `failovers` to another endpoint
        than the first. `breaker_openings` and `breaker_probes`. `usage_capped`, see `BudgetKeeper.capped`.
        """
        breakers = [route.breaker for route in self.router.routes]
        return dict(self._counts) | {
            "breaker_openings": sum(one.opened for one in breakers),
            "breaker_probes": sum(one.probes for one in breakers),
            "usage_capped": self.budget.capped,
        }

    async def aclose(self) -> None:
        """Close all connections."""
        for route in self.router.routes:
            await route.client.aclose()

    @contextlib.contextmanager
    def _unless_stopped(self) -> Iterator[anyio.CancelScope]:
        """Wait for something, but no longer than until `stop`."""
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                yield scope
            finally:
                self._waiting.discard(scope)

    async def _until_answered(self, asking: _Asking) -> Found:
        retries, routes = self.config.retries, self.router.routes
        while True:
            try:
                lease = await self._lease(asking)
                if self.config.hedging.after_s is None:
                    return await self._request(asking, lease)
                return await self._hedged(asking, lease, self.config.hedging.after_s)
            except RequestFailed as failure:
                kind = failure.kind
            if asking.sent >= retries.attempts or len(asking.without) == len(routes):
                raise asking.failure(kind, "the judge gave no usable answer")
            if asking.begins_round(routes):
                most = retries.backoff_s * 2.0 ** min(asking.rounds - 1, 60)
                with self._unless_stopped():
                    await asyncio.sleep(self._rng.uniform(0.0, min(most, retries.max_backoff_s)))

    async def _lease(self, asking: _Asking, *, hedge_of: Lease | None = None) -> Lease:
        """Wait for the next request's lease, first at endpoints that have not failed the question in this round.

        A hedge goes behind all questions, and elsewhere if it can.
        """
        age, passed_over = float(asking.age), set(asking.tried)
        if hedge_of is not None:
            age = math.inf
            passed_over.add(hedge_of.route)
        routes = sorted(self.router.routes, key=lambda route: route in passed_over)
        with self._unless_stopped() as scope:
            try:
                lease = await self.router.next(asking.body, age=age, routes=routes, without=asking.without)
            except JudgeFailure as failure:
                asking.status = failure.status or asking.status
                raise asking.failure(failure.kind, str(failure)) from None
        if scope.cancelled_caught or self._stopped:
            if not scope.cancelled_caught:
                lease.close(None)
            raise asking.failure("deadline", "the client was stopped")
        asking.sent += 1
        self._counts["requests"] += 1
        if hedge_of is not None:
            self._counts["hedges"] += 1
        else:
            self._counts["retries"] += asking.sent > 1
            self._counts["failovers"] += lease.route is not self.router.routes[0]
        return lease

    async def _request(self, asking: _Asking, lease: Lease) -> Found:
        """Send one request and close its lease.

        Raises:
            RequestFailed: there is no usable answer; `asking` keeps the reason.
        """
        route = lease.route
        try:
            completion = await route.client.send(lease.body)
        except RequestFailed as failure:
            asking.paid(*lease.close(failure.usage, failure))
            self._failed(asking, route, failure)
            raise
        except BaseException:  # cancelled, or a bug: the lease must not stay held
            asking.paid(*lease.abandon())
            raise
        asking.paid(*lease.close(completion.usage))
        try:
            value = asking.parse(completion.text) if asking.parse else completion.text
        except JudgeFailure as unread:
            said = route.client.tidy(str(unread))
            failure = RequestFailed(unread.kind, said, usage=completion.usage, text=completion.text)
            self._failed(asking, route, failure)
            raise failure from None
        return route, completion, value

    async def _hedged(self, asking: _Asking, lease: Lease, after_s: float) -> Found:
        """Send a request, and a second one if there is no answer after `after_s`; the first usable answer counts."""
        first = asyncio.ensure_future(self._request(asking, lease))
        tasks, sent = {first}, asking.sent
        try:
            await asyncio.wait(tasks, timeout=after_s)
            if not first.done() and sent < self.config.retries.attempts:
                tasks.add(asyncio.ensure_future(self._hedge(asking, lease)))
            pending = tasks
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    if not isinstance(task.exception(), RequestFailed | JudgeFailure):
                        self._counts["hedges_won"] += task is not first
                        return task.result()
                if first in done and asking.sent == sent:
                    break  # the hedge still waits for its lease, and would be later than a retry
            return first.result()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(tasks)

    async def _hedge(self, asking: _Asking, first: Lease) -> Found:
        return await self._request(asking, await self._lease(asking, hedge_of=first))

    def _failed(self, asking: _Asking, route: Route, failure: RequestFailed) -> None:
        self._counts[f"failures/{failure.kind}"] += 1
        asking.failed(route, failure)


@dataclass(eq=False, kw_only=True)
class _Asking:
    """State of one question: its cost, its last failure, and the endpoints that it may still go to."""

    messages: Messages
    parse: Parser | None
    seed: Callable[[int], int] | None
    on_unusable: Callable[[JudgeFailure], object]
    age: int
    """The smaller the older."""
    begin: float
    """By the client's clock."""
    sent: int = 0
    """Requests."""
    unusable: int = 0
    """Answers that could not be used (`ANSWERED`)."""
    rounds: int = 0
    """Times that every endpoint which could be asked had failed it."""
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0
    last: str = ""
    """The last failure, in words."""
    text: str = ""
    """What the model wrote then."""
    status: int | None = None
    """The HTTP status then."""
    tried: set[Route] = field(default_factory=set)
    """Endpoints that failed it in this round."""
    without: set[Route] = field(default_factory=set)
    """Endpoints that cannot answer it."""
    bodies: dict[Route, bytes] = field(default_factory=dict)

    def body(self, route: Route) -> bytes:
        """The request's body for an endpoint."""
        if route not in self.bodies:
            seed = self.seed(self.unusable) if self.seed else None
            self.bodies[route] = route.client.body(self.messages, seed)
        return self.bodies[route]

    def paid(self, usage: Usage, usd: float) -> None:
        """Add what a request took."""
        self.usage += usage
        self.usd += usd

    def failed(self, route: Route, failure: RequestFailed) -> None:
        """Keep the reason why a request gave no answer."""
        self.last = f"{failure.kind} at {route.endpoint.url}: {failure}"
        self.text, self.status = failure.text, failure.status
        self.tried.add(route)
        if failure.kind not in AGAIN:
            self.without.add(route)
        if failure.kind in ANSWERED:
            self.unusable += 1
            if self.seed:
                self.bodies.clear()  # the next request has another seed
            self.on_unusable(self.failure(failure.kind, "the judge gave no usable answer"))

    def begins_round(self, routes: Sequence[Route]) -> bool:
        """Whether no other endpoint can be asked at once: then all are asked again, after a wait."""
        if any(route.wait_s() <= 0 for route in routes if route not in self.tried | self.without):
            return False
        self.tried.clear()
        self.rounds += 1
        return True

    def failure(self, kind: FailureKind, why: str) -> JudgeFailure:
        """The failure that ends the question."""
        last = f"; the last of {plural(self.sent, 'request')} failed with {self.last}" if self.last else ""
        return JudgeFailure(why + last, kind, self.usage, self.usd, self.sent, self.text, self.status)


async def _end(tasks: set[asyncio.Task[Found]]) -> None:
    """Cancel tasks and wait for them; cancel again every 0.1 s, since a library may lose a cancellation."""
    while pending := {task for task in tasks if not task.done()}:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=0.1)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, or asyncio would log it
