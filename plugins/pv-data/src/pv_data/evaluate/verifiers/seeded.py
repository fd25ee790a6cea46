"""pv_rl's judge client, with a seed of its own in each request."""

from __future__ import annotations

import json
from contextvars import ContextVar

from pv_rl.judge.asking import Asking
from pv_rl.judge.client import Found, JudgeClient

__all__ = ["SEED", "SeededClient"]

SEED: ContextVar[int | None] = ContextVar("pv_data_seed", default=None)
"""Of the request that is being asked; None: requests carry none."""


class SeededClient(JudgeClient):
    """Symptom without it: `JudgeConfig.sampling` is the same for all requests, and with one seed all samples of a pair
    are the same text. Can go when `JudgeClient.ask` takes fields of a request."""

    async def _until_answered(self, asking: Asking) -> Found:
        seed = SEED.get()
        if seed is not None:
            for route in self._turns.routes:
                fields = json.loads(route.exchange.body(asking.messages))
                body = json.dumps({**fields, "seed": seed}, ensure_ascii=False, separators=(",", ":"))
                asking.bodies[route] = body.encode("utf-8", "replace")
        return await super()._until_answered(asking)
