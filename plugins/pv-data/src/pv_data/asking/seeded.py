"""pv_rl's judge client, with a seed of its own in each request, and with attempts made before an interruption."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pv_data.asking.unanswered import ANSWERED
from pv_judge.answer import JudgeFailure, Usage
from pv_judge.asking import Asking
from pv_judge.client import Found, JudgeClient
from pv_judge.completion import RequestFailed
from pv_judge.router import Route

__all__ = ["ATTEMPTS", "Attempts", "SeededClient"]


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """At the question that is being asked."""

    seed: Callable[[int], int] | None = None
    """Of a request after so many answers that nobody could use; None: requests carry none."""
    before: int = 0
    """Answers that nobody could use, from before the run was interrupted."""
    usage: Usage = field(default_factory=Usage)
    """What they took."""
    unused: Callable[[int, JudgeFailure], object] = lambda attempt, failure: None
    """Told of each further one, with its number, from 0, and the usage of all so far."""


FIRST = Attempts()
ATTEMPTS: ContextVar[Attempts] = ContextVar("pv_data_attempts", default=FIRST)


class SeededClient(JudgeClient):
    """Symptom without it: `JudgeConfig.sampling` is the same for all requests, and with one seed all samples of a pair
    are the same text. Can go when `JudgeClient.ask` takes fields of a request, and attempts that were made before."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unused: Counter[Asking] = Counter()

    async def _until_answered(self, asking: Asking) -> Found:
        attempts = ATTEMPTS.get()
        asking.sent = self._unused[asking] = attempts.before
        asking.paid(attempts.usage, 0.0)
        self._seed(asking)
        try:
            return await super()._until_answered(asking)
        finally:
            self._unused.pop(asking, None)

    def _failed(self, asking: Asking, route: Route, failure: RequestFailed) -> None:
        super()._failed(asking, route, failure)
        if failure.kind in ANSWERED:
            unused = asking.failure(failure.kind, "the judge gave no usable answer")
            ATTEMPTS.get().unused(self._unused[asking], unused)
            self._unused[asking] += 1
            self._seed(asking)

    def _seed(self, asking: Asking) -> None:
        seed_of = ATTEMPTS.get().seed
        if seed_of is None:
            return
        for route in self._turns.routes:
            fields = json.loads(route.exchange.body(asking.messages))
            seed = seed_of(self._unused[asking])
            body = json.dumps({**fields, "seed": seed}, ensure_ascii=False, separators=(",", ":"))
            asking.bodies[route] = body.encode("utf-8", "replace")
