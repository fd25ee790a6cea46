"""pv_rl's judge client, with a seed of its own in each request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from pv_rl.judge.answer import FailureKind
from pv_rl.judge.asking import Asking
from pv_rl.judge.client import Found, JudgeClient
from pv_rl.judge.completion import RequestFailed
from pv_rl.judge.turns import Route

__all__ = ["SEED", "UNREADABLE", "SeededClient"]

SEED: ContextVar[Callable[[int], int] | None] = ContextVar("pv_data_seed", default=None)
"""Of the question that is being asked: the seed after so many unreadable answers; None: requests carry none."""
UNREADABLE: frozenset[FailureKind] = frozenset({"invalid_json", "wrong_schema", "bad_response"})
"""The model answered and nobody can use it: with the same seed it would answer the same again."""


class SeededClient(JudgeClient):
    """Symptom without it: `JudgeConfig.sampling` is the same for all requests, and with one seed all samples of a pair
    are the same text. Can go when `JudgeClient.ask` takes fields of a request."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unread: Counter[Asking] = Counter()

    async def _until_answered(self, asking: Asking) -> Found:
        self._seed(asking, 0)
        try:
            return await super()._until_answered(asking)
        finally:
            self._unread.pop(asking, None)

    def _failed(self, asking: Asking, route: Route, failure: RequestFailed) -> None:
        super()._failed(asking, route, failure)
        if failure.kind in UNREADABLE:
            self._unread[asking] += 1
            self._seed(asking, self._unread[asking])

    def _seed(self, asking: Asking, unread: int) -> None:
        seed_of = SEED.get()
        if seed_of is None:
            return
        for route in self._turns.routes:
            fields = json.loads(route.exchange.body(asking.messages))
            body = json.dumps({**fields, "seed": seed_of(unread)}, ensure_ascii=False, separators=(",", ":"))
            asking.bodies[route] = body.encode("utf-8", "replace")
