"""Request router: chooses an endpoint, then waits for a concurrency slot, budget and a circuit-breaker permit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from pv_judge.answer import FailureKind, JudgeFailure, Usage
from pv_judge.breaker import REFUSED, CircuitBreaker, Permit
from pv_judge.budget import BudgetKeeper, Reservation
from pv_judge.completion import RequestFailed, estimate_tokens
from pv_judge.config import Endpoint, JudgeConfig
from pv_judge.http import EndpointClient
from pv_judge.rate_limiter import RateLimiter, Slot
from pv_rl.errors import ConfigError

__all__ = ["Lease", "RequestRouter", "Route"]

PAUSES: frozenset[FailureKind] = frozenset({"rate_limited", "server_error"})
"""Kinds whose Retry-After pauses the whole endpoint."""
NOT_THERE = frozenset({301, 302, 303, 307, 308, 404, 405, 410})
"""Statuses of a wrong address, or of a model that the account does not have."""


@dataclass(eq=False, kw_only=True)
class Route:
    """One endpoint with its client, rate limiter and circuit breaker."""

    endpoint: Endpoint
    client: EndpointClient
    limiter: RateLimiter
    breaker: CircuitBreaker
    max_tokens: int
    """Of an answer; 0 without such a setting."""
    failure: RequestFailed | None = None
    """The last one."""
    refusal: RequestFailed | None = None
    """The last failure of a kind in `REFUSED`."""
    refused: tuple[int, str] = (0, "")
    """Requests since its last answer that failed by `REFUSED` or `NOT_THERE`, and what the last of them said."""

    def wait_s(self) -> float:
        """Seconds until a request may be sent to the endpoint."""
        return max(self.breaker.wait_s(), self.limiter.pause_left_s())


@dataclass(eq=False, kw_only=True)
class Lease:
    """Permission to send one request. It holds slot, permit and reservation until `close` or `abandon`."""

    route: Route
    body: bytes
    slot: Slot
    permit: Permit
    reservation: Reservation
    budget: BudgetKeeper

    def close(self, usage: Usage | None, failure: RequestFailed | None = None) -> tuple[Usage, float]:
        """The request ended and took `usage`, as the server counts (None: it was not sent).

        Returns:
            The usage that is booked, see `BudgetKeeper.bounded`, and its price in USD.
        """
        limiter = self.route.limiter
        if failure is not None and failure.retry_after_s and failure.kind in PAUSES:
            limiter.pause(failure.retry_after_s)
        self.route.failure = failure or self.route.failure
        if failure is not None and failure.kind in REFUSED:
            self.route.refusal = failure
        if failure is None:
            self.route.refused = (0, "")
        elif failure.kind in REFUSED or failure.status in NOT_THERE:
            self.route.refused = (self.route.refused[0] + 1, str(failure))
        self.permit.ended(failure.kind if failure else None)
        if not self.route.breaker.closed:
            limiter.pause(0.0)  # sends those that wait for a slot to another endpoint
        if usage is None:
            self.slot.unused()
        else:
            usage = self.budget.bounded(self.reservation, usage)
            overload = failure is not None and (failure.kind == "rate_limited" or failure.status == 503)
            tokens = usage.prompt_tokens + usage.completion_tokens
            self.slot.done(tokens, answered=failure is None, overload=overload)
        unsettled = failure is not None and failure.unsettled
        return usage or Usage(), self.budget.settle(self.reservation, usage, unsettled=unsettled)

    def abandon(self) -> tuple[Usage, float]:
        """The request was cancelled; the server may bill it. Returns estimated usage and USD."""
        self.permit.dropped()
        self.slot.done()
        usage = Usage(prompt_tokens=estimate_tokens(self.body))
        return usage, self.budget.settle(self.reservation, usage, unsettled=True)


class RequestRouter:
    """Routes requests to the endpoints of a judge, in order of preference."""

    def __init__(
        self, config: JudgeConfig, budget: BudgetKeeper, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.budget = budget
        self._config = config
        self._clock = clock
        self._change = asyncio.Event()
        budget.waiting.append(self._wake)
        self.routes = tuple(self._route(endpoint) for endpoint in config.endpoints)

    async def next(
        self,
        body: Callable[[Route], bytes],
        *,
        age: float,
        routes: Sequence[Route],
        without: Container[Route] = (),
    ) -> Lease:
        """Wait for a lease of the first of `routes` that is available; the smallest `age` goes first.

        Raises:
            JudgeFailure: of kind `budget`, or of `REFUSED` where every endpoint refuses all requests.
        """
        while True:
            route = await self._first(routes, without)
            raw = body(route)
            slot = await route.limiter.acquire(estimate_tokens(raw) + route.max_tokens, age)
            if slot is None:  # paused meanwhile
                continue
            if route.breaker.wait_s() > 0:  # opened meanwhile
                slot.unused()
                continue
            change = self._change
            reservation = None
            try:
                # No tokenizer makes more tokens than there are bytes.
                reservation = self.budget.reserve(route.endpoint.model, len(raw), route.max_tokens)
            finally:
                if reservation is None:
                    slot.unused()
            if reservation is None:
                await change.wait()
                continue
            # Only now: a permit that is dropped wakes the requests that wait for budget, and each would drop it again.
            permit = route.breaker.enter()
            assert permit is not None  # nothing was awaited since it was asked
            return Lease(
                route=route,
                body=raw,
                slot=slot,
                permit=permit,
                reservation=reservation,
                budget=self.budget,
            )

    async def _first(self, routes: Sequence[Route], without: Container[Route]) -> Route:
        """The first route that is up; waits while all are down.

        Raises:
            JudgeFailure: all refuse every request.
        """
        left = [route for route in routes if route not in without]
        while True:
            change, shortest = self._change, float("inf")
            for route in left:
                wait = route.wait_s()
                if wait <= 0:
                    return route
                shortest = min(shortest, wait)
            refusals = [route.refusal for route in left if route.breaker.refused and route.refusal]
            if refusals and len(refusals) == len(left):
                said = "; ".join(
                    f"{route.endpoint.url} refuses every request: {route.refusal}" for route in left
                )
                raise JudgeFailure(said, refusals[0].kind, status=refusals[0].status)
            with anyio.move_on_after(shortest):
                await change.wait()

    def _wake(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _route(self, endpoint: Endpoint) -> Route:
        config = self._config
        fields: dict[str, Any] = {**config.sampling, **endpoint.extra_body}
        most = fields.get("max_completion_tokens", fields.get("max_tokens"))
        if type(most) is not int or most < 1:  # some servers take -1 for no limit
            most = 0
        if config.budget.in_dollars and not most:
            raise ConfigError(
                "judge.budget has a limit in dollars, which needs a bound on the price of an answer. Set "
                "judge.sampling.max_tokens to 1 or more"
            )
        return Route(
            endpoint=endpoint,
            client=EndpointClient(endpoint, config),
            limiter=RateLimiter(config.limits, config.retries, clock=self._clock),
            breaker=CircuitBreaker(config.breaker, clock=self._clock, changed=self._wake),
            max_tokens=most,
        )
