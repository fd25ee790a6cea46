"""Refusal classifier: tells a question that a provider refuses for good from an endpoint that refuses every question.

Both come as a 4xx status, and each provider has words of its own: 400 is an empty account at one and a content policy
at another, and the message may quote the proof. So a short question is asked after a refusal. If the model answers it,
the account and the model's name are right, and the first question was refused for what it says.
"""

from __future__ import annotations

import asyncio
import math

from pv_judge.answer import ANSWERED, JudgeFailure
from pv_judge.budget import BudgetKeeper
from pv_judge.client import JudgeClient
from pv_judge.config import JudgeConfig

__all__ = ["NOT_SERVED", "REFUSED", "RefusalCheck", "may_be_shared", "reason_of"]

NOT_SERVED, REFUSED = "no answer", "refused"
"""How the reason of a rejected row begins: `retry_aside` asks again about the first kind only."""
SHORT = ({"role": "user", "content": "Reply with the word OK."},)


def reason_of(failure: JudgeFailure) -> str:
    """The reason of a rejected row. `refused: WHY` if the provider refuses it for good, else `no answer: KIND`."""
    if failure.kind == "refusal":
        return f"{REFUSED}: content"
    if _is_too_long(failure):
        return f"{REFUSED}: too long"
    if failure.kind == "client_error" or (failure.kind == "authentication" and failure.status == 403):
        return f"{REFUSED}: HTTP {failure.status}"
    return f"{NOT_SERVED}: {failure.kind}"


def may_be_shared(failure: JudgeFailure) -> bool:
    """Whether the endpoint may refuse every question: an unknown model, no access, a quota that looks like a rate."""
    return failure.kind in ("authentication", "quota", "client_error", "context_length", "rate_limited")


def _is_too_long(failure: JudgeFailure) -> bool:
    return failure.kind == "context_length" or failure.status == 413


class RefusalCheck:
    """Asks one model the short question. Callers that come together share one request."""

    def __init__(self, config: JudgeConfig, budget: BudgetKeeper, *, seeded: bool) -> None:
        """`seeded`: requests have a seed, as those of a local model do."""
        self._config, self._budget = config, budget
        self._seed = (lambda unread: unread) if seeded else None
        self._client: JudgeClient | None = None
        self._lock = asyncio.Lock()
        self._asked_at = -math.inf
        self._failure: JudgeFailure | None = None
        self.answered = False
        """Whether an answer came since a question was last found too long: then this one does not fit, others do."""

    async def cause(self, failure: JudgeFailure) -> JudgeFailure | None:
        """Why every further question would be refused like this one; None if only this one is."""
        if not may_be_shared(failure):
            return None
        if _is_too_long(failure) and self.answered:
            self.answered = False
            return None
        account = failure.kind == "quota" or failure.status in (401, 402)
        if account and len(self._config.endpoints) == 1:
            return failure
        called_at = asyncio.get_running_loop().time()
        async with self._lock:
            if self._asked_at < called_at:
                self._asked_at = asyncio.get_running_loop().time()
                self._failure = await self._ask()
            return self._failure

    async def _ask(self) -> JudgeFailure | None:
        # A client of its own: the breakers of the run's client may be open and would answer for the endpoint.
        self._client = self._client or JudgeClient(self._config, self._budget)
        try:
            await self._client.ask(SHORT, seed=self._seed)
        except JudgeFailure as failure:
            return None if failure.kind in (*ANSWERED, "refusal", "too_large") else failure
        return None

    def stop(self) -> None:
        """Send no further request."""
        if self._client is not None:
            self._client.stop()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
