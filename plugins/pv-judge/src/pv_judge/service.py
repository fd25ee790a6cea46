"""Judge service of a run: all callers share its limits, budget, breakers, cache and ledger.

In a Ray run it is one small named actor (`pv_judge.ray_service`). If a reward worker dies, its questions continue here,
and the worker that scores the rows again finds their answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from pv_judge.answer import Answer, JudgeFailure, Question, Usage
from pv_judge.budget import BudgetKeeper
from pv_judge.client import JudgeClient
from pv_judge.config import STRICT, JudgeConfig
from pv_judge.ledger import Ledger, LedgerRow
from pv_judge.metrics import FailureLog, Metrics, RowId, Span
from pv_judge.quarantine import Quarantine
from pv_judge.response_cache import ResponseCache
from pv_judge.spend_file import SpendFile

__all__ = ["Halt", "JudgeService", "ServiceConfig"]

logger = logging.getLogger("pv_rl")


@settings(frozen=True, kw_only=True, config=STRICT)
class Halt:
    """When the policy `halt` stops the run."""

    failure_rate: float = Field(default=0.5, gt=0, le=1)
    """Share of the last `window` judged rows that got no answer."""
    window: int = Field(default=100, ge=1)
    """Judged rows; the policy never stops a run with fewer."""


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """Settings of a service."""

    judge: JudgeConfig | None = None
    """None: no judge is asked, and rows are only recorded."""
    ledger: str | None = None
    """Folder of the ledger; None: rows are not recorded."""
    halt: Halt | None = None
    """None: no policy of the reward stops the run."""

    @property
    def digest(self) -> str:
        """16 hex digits, the same for the same settings in every process."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


class JudgeService:
    """See the module. All its methods run in one event loop.

    Args:
        config: its settings.
        spent: the spend file; None: spending is kept in memory.
        start: id of this start of the run, see `SpendFile`.

    Raises:
        ConfigError: a key is not in the environment.
        DataError: the cache, the ledger or the spend file is a file of something else.
        SetupError: another process uses the spend file.
    """

    def __init__(self, config: ServiceConfig, spent: Path | None = None, start: str = "") -> None:
        self.config = config
        judge = config.judge
        self.ledger = Ledger(config.ledger) if config.ledger else None
        self.budget = BudgetKeeper(judge.budget, judge.prices) if judge else None
        self.client = JudgeClient(judge, self.budget) if judge else None
        self.cache = ResponseCache(judge) if judge else None
        self.quarantine: Quarantine | None = None
        self.spend_file = None
        if spent is not None and self.budget is not None:
            self.spend_file = SpendFile(spent.parent, self.budget, name=spent.name, start=start)
        if judge is not None and judge.unpriced:
            logger.warning(
                "judge.prices has no price for %s, so no dollars are reported. Add prices in USD per million tokens; "
                "for a server that costs nothing: {input: 0, output: 0}",
                ", ".join(judge.unpriced),
            )
        self._metrics = Metrics()
        self._asked: dict[str, asyncio.Task[Answer | JudgeFailure]] = {}
        self._failure_log = FailureLog()
        self._closed = False
        self._failed: deque[bool] = deque(maxlen=config.halt.window if config.halt else 1)

    async def ask(self, question: Question) -> Answer | JudgeFailure:
        """The answer. A question that is in the cache or in flight is not sent again.

        A failure is returned and not raised, because Ray returns it as it is.
        """
        if self.cache is None:
            raise RuntimeError("this service has no judge to ask")
        if self._closed:  # rows that an asynchronous trainer has ahead when its last step is done
            return JudgeFailure("the run has ended", "deadline")
        key = self.cache.key(question)
        task = self._asked.get(key)
        if task is not None:
            return _free(await asyncio.shield(task))
        # A task of its own: it continues when the caller is cancelled or killed.
        task = self._asked[key] = asyncio.ensure_future(self._ask(question, key))
        task.add_done_callback(lambda _: self._asked.pop(key, None))
        return await asyncio.shield(task)

    async def _ask(self, question: Question, key: str) -> Answer | JudgeFailure:
        assert self.cache is not None
        assert self.client is not None
        if (known := await self.cache.get(question)) is not None:
            self._metrics.counts["cache_hits"] += 1
            return known
        self._metrics.counts["cache_misses"] += 1
        try:
            parse = self.quarantine.parser(key, question.parse) if self.quarantine else question.parse
            answer = await self.client.ask(question.messages, parse)
        except JudgeFailure as failure:
            self._failure_log.add(failure)
            answer = failure
        else:
            await self.cache.put(question, answer)
        self._metrics.add(answer)
        if self.spend_file is not None:
            self.spend_file.save()
        return answer

    async def record(self, row: LedgerRow, begin: float | None = None, failed: bool | None = None) -> None:
        """Write a row to the ledger. When this returns, the row survives a kill of any process of the run.

        Args:
            row: the decision; its `time` is when the reward was ready.
            begin: when the reward was requested, in seconds since the epoch.
            failed: for the policy `halt`: whether a judged row got no answer; None for a row that was not judged.
        """
        if self._closed:
            return
        if failed is not None:
            self._failed.append(failed)
        end = row.time.timestamp()
        self._metrics.add_span((row.uid, row.session), (end if begin is None else begin, end))
        if self.ledger is not None:
            try:
                await asyncio.to_thread(self.ledger.append, row)
            except OSError:  # a full disk must not end the run; it is counted, and logged once
                if not self._metrics.counts["disk_errors"]:
                    logger.exception(
                        "the ledger %s could not be written; the run continues", self.config.ledger
                    )
                self._metrics.counts["disk_errors"] += 1

    async def report(
        self, step: int, rows: Iterable[RowId] = (), window: Span | None = None
    ) -> dict[str, float]:
        """Numbers since the last report, see `Metrics.report`; what is asked from now on belongs to `step`."""
        numbers = self._metrics.report(rows, window)
        if self.cache is not None:
            numbers["disk_errors/sum"] += self.cache.take_errors()
        if self.budget is not None and self.client is not None:
            numbers |= self._metrics.since_last(self.client.counters())
            if self.client.config.unpriced:
                del numbers["usd/sum"]
            else:
                numbers["usd_run/max"] = self.budget.spent.in_run.usd
            self.budget.begin_step(step)
        if self.spend_file is not None:
            self.spend_file.save(at_once=True)
        return numbers

    async def halt_reason(self) -> str | None:
        """Why the run should stop, or None."""
        halt = self.config.halt
        if halt is None or len(self._failed) < halt.window:
            return None
        failed = sum(self._failed)
        if failed < halt.failure_rate * halt.window:
            return None
        return (
            f"{failed} of the last {halt.window} judged rows got no answer, and the policy is halt at "
            f"{halt.failure_rate:.0%}"
        )

    async def close(self) -> None:
        """Fold the ledger's journal into Parquet and close connections. Later questions get no answer."""
        self._closed = True
        if self.client is not None:
            await self.client.aclose()
        if self.spend_file is not None:
            self.spend_file.close()
        if self.ledger is not None:
            await asyncio.to_thread(self.ledger.close)


def _free(answer: Answer | JudgeFailure) -> Answer | JudgeFailure:
    """The answer for a second caller: it was paid for once."""
    if isinstance(answer, Answer):
        return replace(answer, usage=Usage(), usd=0.0, requests=0, cached=True)
    return JudgeFailure(str(answer), answer.kind, text=answer.text, status=answer.status)
