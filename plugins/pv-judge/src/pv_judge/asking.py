"""State of one question in the client: its cost, its last failure, and the endpoints that it may still go to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pv_judge.answer import FailureKind, JudgeFailure, Messages, Parser, Usage
from pv_judge.completion import RequestFailed
from pv_judge.router import Route

__all__ = ["AGAIN", "Asking"]

AGAIN: frozenset[FailureKind] = frozenset(
    {
        "connect",
        "timeout",
        "reset",
        "rate_limited",
        "server_error",
        "bad_response",
        "invalid_json",
        "wrong_schema",
    }
)
"""The same endpoint may answer a later request. After any other failure, only another endpoint is asked."""


@dataclass(eq=False, kw_only=True)
class Asking:
    """See the module."""

    messages: Messages
    parse: Parser | None
    age: int
    """The smaller the older."""
    begin: float
    """By the client's clock."""
    sent: int = 0
    """Requests."""
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
            self.bodies[route] = route.exchange.body(self.messages)
        return self.bodies[route]

    def paid(self, usage: Usage, usd: float) -> None:
        """Add what a request took."""
        self.usage = Usage(
            prompt_tokens=self.usage.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens + usage.completion_tokens,
            cached_tokens=self.usage.cached_tokens + usage.cached_tokens,
        )
        self.usd += usd

    def failed(self, route: Route, failure: RequestFailed) -> None:
        """Remember why a request gave no answer."""
        self.last = f"{failure.kind} at {route.endpoint.url}: {failure}"
        self.text, self.status = failure.text, failure.status
        self.tried.add(route)
        if failure.kind not in AGAIN:
            self.without.add(route)

    def begins_round(self, routes: Sequence[Route]) -> bool:
        """Whether no other endpoint can be asked at once: then all are asked again, after a wait."""
        if any(route.wait_s() <= 0 for route in routes if route not in self.tried | self.without):
            return False
        self.tried.clear()
        self.rounds += 1
        return True

    def failure(self, kind: FailureKind, why: str) -> JudgeFailure:
        """Its end without an answer."""
        last = f"; the last of {self.sent} requests failed with {self.last}" if self.last else ""
        return JudgeFailure(why + last, kind, self.usage, self.usd, self.sent, self.text, self.status)
