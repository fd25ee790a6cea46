"""One question on its way through the client: what it has cost, why it has no answer yet, whether it is asked again."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_rl.judge.answer import FailureKind, JudgeFailure, Messages, Parser, Usage
from pv_rl.judge.completion import RequestFailed
from pv_rl.judge.turns import Route

__all__ = ["AGAIN", "ELSEWHERE", "Asking"]

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
"""Asking again may help."""
ELSEWHERE: frozenset[FailureKind] = frozenset({"client_error", "too_large"})
"""Only another endpoint may help. What is in neither set is final."""


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
    failures: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0
    last: str = ""
    """The last failure, in words."""
    text: str = ""
    """What the model wrote then."""
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
        self.failures += 1
        self.last = f"{failure.kind} at {route.endpoint.url}: {failure}"
        self.text = failure.text
        if failure.kind in ELSEWHERE:
            self.without.add(route)

    def is_over(self, kind: FailureKind, *, attempts: int, endpoints: int) -> bool:
        """Whether a failure of `kind` ends it: that cannot pass, the attempts are used up, or no endpoint is left."""
        return kind not in AGAIN | ELSEWHERE or self.sent >= attempts or len(self.without) >= endpoints

    def failure(self, kind: FailureKind, why: str) -> JudgeFailure:
        """Its end without an answer."""
        last = f"; the last of {self.sent} requests failed with {self.last}" if self.last else ""
        return JudgeFailure(why + last, kind, self.usage, self.usd, self.sent, self.text)
