"""Model client of a process: shared by its stages, and does not pay twice for a known answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pv_data.asking.keeping import Keeping, Question
from pv_data.asking.seeded import ATTEMPTS, Attempts, SeededClient
from pv_data.asking.settings import Model
from pv_data.asking.unanswered import DOUBT, Unanswered, entry
from pv_data.asking.writing import Writer
from pv_data.records import Origin
from pv_judge.answer import JudgeFailure, Usage
from pv_judge.budget import BudgetKeeper
from pv_judge.cache import AnswerCache, CachedAnswer, CacheUnavailable
from pv_rl.errors import PvRlError

__all__ = ["Asker", "Question", "Replied", "Stopped"]

logger = logging.getLogger("pv_rl")

OUTAGE_S = 60.0
"""So long may all endpoints of a model be down before the run ends."""
LOOK_S = 1.0


class Stopped(PvRlError, RuntimeError):
    """The run ends before this question was asked. The text says why."""


@dataclass(frozen=True, kw_only=True)
class Replied:
    """A usable answer."""

    value: Any
    """What the parser made of it."""
    text: str
    origin: Origin


class Asker:
    """Asks, keeps answers in the cache, and stops the run where going on would be of no use.

    Raises:
        ConfigError: a key that is not in the environment.
        DataError: the cache is the file of something else.
    """

    def __init__(
        self,
        model: Model,
        budget: BudgetKeeper,
        unanswered: Path,
        *,
        through: Model | None = None,
        patience: int = 50,
        spent: Callable[[], object] = lambda: None,
    ) -> None:
        """
        Args:
            model: with `cache` set.
            budget: of the process, shared by its models.
            unanswered: the file of the answers that nobody can use.
            through: of a local model, the settings of the server that answers for it.
            patience: so many questions in a row without an answer end the run.
            spent: called when money was spent.
        """
        assert model.cache is not None
        asked = through or model
        self._model, self._keeping = model, Keeping(model)
        self._client = SeededClient(asked, budget)
        self._cache = AnswerCache(model.cache)
        self._unanswered = Unanswered(unanswered) if unanswered.exists() else None  # of a run that goes on
        self._writer = Writer(model.cache)
        self._failures: Writer | None = None
        self._of_failures = unanswered
        self._room = asyncio.Semaphore(asked.in_the_works)
        self._patience = patience
        self._spent = spent
        self._watching: asyncio.Task[None] | None = None
        self._last = "its server could not be reached, or answered with errors"
        self._said: set[str] = set()
        self._asked: dict[str, asyncio.Event] = {}
        self._in_vain = 0
        self._why: str | None = None

    async def ask(self, question: Question, parse: Callable[[str], Any] | None, *, sample: int) -> Replied:
        """The answer to a question.

        Args:
            question: what is asked.
            parse: from text to value; raises `JudgeFailure` of kind `invalid_json` or `wrong_schema`.
            sample: asked again under another number, the same question has another answer.

        Raises:
            JudgeFailure: there is no usable answer; the row is set aside.
            Stopped: the run ends: money, patience or the user.
            CacheUnavailable: (an OSError) an answer could not be kept; it is better to stop than to pay for it twice.
        """
        key = self._keeping.key(question, sample)
        local = self._model.local is not None
        async with self._alone(key), self._room:
            known = self._cache.get(key)
            if known is not None:
                try:
                    value = parse(known.text) if parse else known.text
                    return Replied(value=value, text=known.text, origin=self._origin(question, sample, known))
                except JudgeFailure:  # damaged, or read by another parser: the next answer takes its place
                    self._cache.drop(key)
            self._go_on()
            if self._watching is None:
                self._watching = asyncio.ensure_future(self._watch())
            made, last = self._unanswered.last(key) if self._unanswered is not None else (0, None)
            if last is not None and (
                last.kind in ("truncated", "no_text") or made >= self._client.config.retries.attempts
            ):
                raise last
            unused: list[asyncio.Future[None]] = []

            def keep(attempt: int, failure: JudgeFailure) -> None:
                unused.append(self._put(*entry(key, attempt, failure, self._model.model)))

            ATTEMPTS.set(
                Attempts(
                    seed=partial(question.seed, sample) if local else None,
                    before=made,
                    usage=last.usage if last is not None else Usage(),
                    unused=keep,
                )
            )
            try:
                answer = await self._client.ask(question.messages, parse)
            except JudgeFailure as failure:
                await self._on_disk(*unused)
                self._go_on()
                self._count(failure)
                raise
            finally:
                self._spent()
            self._in_vain = 0
            name = self._model.model if local else answer.model
            kept = CachedAnswer(text=answer.text, usage=answer.usage, model=name)
            # The answer is on disk before anybody acts on it: a kill after this line pays for nothing twice. It holds
            # room until then, so that only so many can be on their way to a disk that is slow.
            await self._on_disk(self._writer.put(key, kept), *unused)
        return Replied(value=answer.value, text=kept.text, origin=self._origin(question, sample, kept))

    def stop(self, why: str) -> None:
        """Send nothing any more; what is on its way is waited for by those who asked."""
        self._why = self._why or why
        self._client.stop()

    def _put(self, key: str, failure: CachedAnswer) -> asyncio.Future[None]:
        """Write a failure down; most runs have none, and open no file for them."""
        if self._failures is None:
            try:
                self._failures = Writer(self._of_failures)
            except CacheUnavailable as error:
                self.stop(str(error))
                raise
        return self._failures.put(key, failure)

    async def _on_disk(self, *written: asyncio.Future[None]) -> None:
        failures = list[CacheUnavailable]()
        for one in written:
            try:
                await one
            except CacheUnavailable as error:
                failures.append(error)
        if failures:
            self.stop(str(failures[0]))
            raise failures[0]

    @contextlib.asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        """A question that is being asked is not asked again at the same time: its answer will be known."""
        while (asked := self._asked.get(key)) is not None:
            await asked.wait()
        self._asked[key] = asyncio.Event()
        try:
            yield
        finally:
            self._asked.pop(key).set()

    async def _watch(self) -> None:
        """Stop when no endpoint has been well for too long: a question waits for its deadline, an hour, otherwise."""
        down_s = 0.0
        while down_s < OUTAGE_S:
            await asyncio.sleep(LOOK_S)
            down_s = down_s + LOOK_S if self._client.down else 0.0
        self.stop(
            f"{self._model.model} has not answered for {OUTAGE_S:.0f} s; the last failure: {self._last}. Nothing is "
            "lost: see to it, and run the same command again"
        )

    async def aclose(self) -> None:
        """Close connections and the cache."""
        if self._watching is not None:
            self._watching.cancel()
        try:
            await self._client.aclose()
        finally:
            self._cache.close()
            if self._unanswered is not None:
                self._unanswered.close()
            for writer in (self._writer, self._failures):
                if writer is not None:
                    await writer.aclose()

    def _origin(self, question: Question, sample: int, answer: CachedAnswer) -> Origin:
        usd = self._client.budget.usd(answer.model, answer.usage)
        return self._keeping.origin(question, sample, answer, usd)

    def _go_on(self) -> None:
        if self._why is not None:
            raise Stopped(self._why)

    def _count(self, failure: JudgeFailure) -> None:
        """Stop on a failure that all further questions would share."""
        self._last = str(failure)
        if failure.kind not in self._said:
            self._said.add(failure.kind)
            logger.warning("%s gave no usable answer, said once of its kind: %s", self._model.model, failure)
        if failure.kind == "budget":
            self.stop(
                "the budget is used up: the rest would not pay for an answer of sampling.max_tokens. Raise budget_usd "
                "and run the same command again; what other processes have left is then divided anew. The refused "
                f"request: {failure}"
            )
            raise Stopped(self._why or "") from failure
        self._in_vain += 1
        if self._in_vain >= self._patience:
            self._put(*DOUBT)
            self.stop(
                f"{self._model.model} gave no usable answer to {self._in_vain} questions in a row; the last: "
                f"{failure}. Nothing is lost: see to it, or raise `patience`, and run the same command again"
            )
            raise Stopped(self._why or "") from failure
