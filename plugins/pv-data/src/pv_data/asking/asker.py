"""Model clients of a stage: they share a budget and keep every answer before it is used.

They stop the run where further questions would fail as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pv_data.asking.kept_answers import ASK_AGAIN, DOUBT, INSTEAD, Keeping, Question, Unanswered, entry
from pv_data.asking.refused import RefusalCheck, may_be_shared
from pv_data.asking.settings import Model
from pv_data.records import Origin
from pv_judge.answer import Answer, JudgeFailure
from pv_judge.budget import BudgetKeeper
from pv_judge.cache import AnswerCache, CachedAnswer, CacheUnavailable
from pv_judge.cache_writer import CacheWriter
from pv_judge.client import JudgeClient
from pv_judge.pages.text import plural
from pv_rl.errors import PvRlError

__all__ = ["Asker", "Kept", "Replied", "Stopped"]

logger = logging.getLogger("pv_rl")

OUTAGE_S = 60.0
"""The run ends when all endpoints of a model were down for so long."""
LOOK_S = 1.0


class Stopped(PvRlError, RuntimeError):
    """The run ends before this question was asked. The text gives the reason; the same command resumes the run."""

    exit_code = 3


@dataclass(frozen=True, kw_only=True)
class Replied:
    """A usable answer."""

    value: Any
    """What the parser made of it."""
    text: str
    origin: Origin


class Kept:
    """Answers of a local model that was asked beforehand, in batches. It sends nothing."""

    def __init__(self, model: Model, unanswered: Path) -> None:
        """
        Args:
            model: with `cache` set.
            unanswered: file of the unusable answers.
        """
        assert model.cache is not None
        self._model, self._keeping = model, Keeping(model)
        self._cache = AnswerCache(model.cache, instead=INSTEAD)
        # Most runs have no failures, and then there is no such file.
        self._unanswered = Unanswered(unanswered) if unanswered.exists() else None
        self._why: str | None = None

    async def ask(self, question: Question, parse: Callable[[str], Any] | None, *, sample: int) -> Replied:
        """The answer to a question.

        Args:
            question: what is asked.
            parse: from text to value; raises `JudgeFailure` of kind `invalid_json` or `wrong_schema`.
            sample: number of the sample; the same question has another answer under another number.

        Raises:
            JudgeFailure: there is no usable answer; the row is rejected.
            Stopped: the question was not asked.
        """
        self._go_on()
        key = self._keeping.key(question, sample)
        if (known := self._cache.get(key)) is not None:
            return self._replied(question, sample, known, parse(known.text) if parse else known.text)
        if (failure := self._last(key)) is not None:
            raise failure
        raise Stopped(f"{self._model.model} was not asked all questions")

    def stop(self, why: str) -> None:
        """Give no further answer: `ask` raises `Stopped`."""
        self._why = self._why or why

    async def aclose(self) -> None:
        """Close the files."""
        self._cache.close()
        if self._unanswered is not None:
            self._unanswered.close()

    def _last(self, key: str) -> JudgeFailure | None:
        """The last unusable answer of an earlier start of the run."""
        return self._unanswered.last(key) if self._unanswered is not None else None

    def _replied(self, question: Question, sample: int, answer: CachedAnswer, value: Any) -> Replied:
        origin = self._keeping.origin(question, sample, answer, self._usd(answer))
        return Replied(value=value, text=answer.text, origin=origin)

    def _usd(self, answer: CachedAnswer) -> float:
        return 0.0

    def _go_on(self) -> None:
        if self._why is not None:
            raise Stopped(self._why)


class Asker(Kept):
    """Asks a model, keeps its answers in the cache, and stops the run where further questions would fail as well.

    Raises:
        ConfigError: a key is not in the environment.
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
        refused: Callable[[str], object] = lambda line: None,
    ) -> None:
        """
        Args:
            model: with `cache` set.
            budget: of the process, shared by its models.
            unanswered: file of the unusable answers.
            through: of a local model, the settings of the server that answers for it.
            patience: the run ends after so many questions in a row without an answer.
            spent: called when money was spent.
            refused: called once for each endpoint that refuses every request while another one answers, with a line
                that says so.
        """
        super().__init__(model, unanswered)
        asked = through or model
        self._client = JudgeClient(asked, budget)
        self._check = RefusalCheck(asked, budget, seeded=model.local is not None)
        self._refused, self._reported = refused, set[str]()
        self._writer = CacheWriter(self._cache.path, instead=INSTEAD)
        self._failures: CacheWriter | None = None
        self._of_failures = unanswered
        self._room = asyncio.Semaphore(asked.in_the_works)
        self._patience = patience
        self._spent = spent
        self._watching: asyncio.Task[None] | None = None
        self._logged: set[str] = set()
        self._asked: dict[str, asyncio.Event] = {}
        self._in_vain = 0

    async def ask(self, question: Question, parse: Callable[[str], Any] | None, *, sample: int) -> Replied:
        """See `Kept.ask`.

        Raises:
            JudgeFailure: there is no usable answer; the row is rejected.
            Stopped: the run ends: money, patience or the user.
            CacheUnavailable: (an OSError) an answer could not be kept, and the next run would pay for it again.
        """
        key = self._keeping.key(question, sample)
        local = self._model.local is not None
        async with self._alone(key), self._room:
            if (known := self._cache.get(key)) is not None:
                try:
                    return self._replied(question, sample, known, parse(known.text) if parse else known.text)
                except JudgeFailure:  # damaged, or of another parser: the next answer replaces it
                    self._cache.drop(key)
            self._go_on()
            if self._watching is None:
                self._watching = asyncio.ensure_future(self._watch())
            earlier = self._last(key)
            made = earlier.requests if earlier else 0
            attempts = self._client.config.retries.attempts
            if earlier and (earlier.kind in ("truncated", "no_text") or made >= attempts):
                raise earlier
            unusable: list[asyncio.Future[None]] = []

            def keep(failure: JudgeFailure) -> None:
                unusable.append(self._put(*entry(key, made + len(unusable), failure, self._model.model)))

            try:
                answer = await self._answer(
                    partial(
                        self._client.ask,
                        question.messages,
                        parse,
                        seed=partial(question.seed, sample) if local else None,
                        earlier=earlier,
                        on_unusable=keep,
                    ),
                    made,
                )
            except JudgeFailure as failure:
                await self._on_disk(*unusable)
                self._go_on()
                self._count(failure)
                raise
            finally:
                self._spent()
            self._report_refusals()
            self._in_vain, self._check.answered = 0, True
            name = self._model.model if local else answer.model
            kept = CachedAnswer(text=answer.text, usage=answer.usage, model=name)
            # The answer is on disk before it is used: a kill after this line pays for nothing twice. It holds its place
            # until then, which bounds the answers that wait for a slow disk.
            await self._on_disk(self._writer.put(key, kept), *unusable)
        return self._replied(question, sample, kept, answer.value)

    def stop(self, why: str) -> None:
        """Send no further request; requests in flight are waited for by their callers."""
        super().stop(why)
        self._client.stop()
        self._check.stop()

    async def aclose(self) -> None:
        """Close connections and files."""
        if self._watching is not None:
            self._watching.cancel()
        try:
            await self._client.aclose()
            await self._check.aclose()
        finally:
            await super().aclose()
            for writer in (self._writer, self._failures):
                if writer is not None:
                    await writer.aclose()

    async def _answer(self, ask: Callable[[], Awaitable[Answer]], made: int) -> Answer:
        """The answer to one question; the run stops where every further question would be refused too.

        Args:
            ask: asks the question once.
            made: its requests in earlier starts of the run.

        Raises:
            JudgeFailure: it has none, and the model answers others.
            Stopped: the run ends.
        """
        while True:
            try:
                return await ask()
            except JudgeFailure as failure:
                self._go_on()
                await self._stop_if_all_are_refused(failure)
                if failure.requests > made or not may_be_shared(failure):
                    raise
                # It was not sent: refusals of other questions have opened the breaker, and the endpoint answers. The
                # breaker lets one question through each time, so every question is sent in the end.
                await asyncio.sleep(self._client.config.breaker.probe_after_s)
                self._go_on()

    async def _stop_if_all_are_refused(self, failure: JudgeFailure) -> None:
        cause = await self._check.cause(failure)
        self._go_on()
        if cause is None:
            return
        if cause.kind == "budget":
            self._count(cause)
        remedy = "Pay for the account, or correct the key, the model's name or the request's fields"
        if cause.kind == "rate_limited":
            remedy = (
                f"Wait, lower the model's limits.requests_per_minute, or: {remedy[0].lower()}{remedy[1:]}"
            )
        self.stop(
            f"{self._model.model} refuses every request: {failure}. No row is rejected for this. {remedy}"
        )
        raise Stopped(self._why or "") from failure

    def _report_refusals(self) -> None:
        for url, said in self._client.refusals.items():
            if url not in self._reported:
                self._reported.add(url)
                line = " ".join(f"{self._model.model}: {url} refuses every request: {said}".split())
                logger.warning("%s. The other endpoints answer in its place", line)
                self._refused(line)

    def _put(self, key: str, failure: CachedAnswer) -> asyncio.Future[None]:
        """Write a failure; the first one makes the file."""
        if self._failures is None:
            try:
                self._failures = CacheWriter(self._of_failures, instead=ASK_AGAIN)
            except CacheUnavailable as error:
                self.stop(str(error))
                raise
        return self._failures.put(key, failure)

    async def _on_disk(self, *written: asyncio.Future[None]) -> None:
        """Wait for all, then raise the first error."""
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
        """Wait while the same question is in flight: its answer will be in the cache."""
        while (asked := self._asked.get(key)) is not None:
            await asked.wait()
        self._asked[key] = asyncio.Event()
        try:
            yield
        finally:
            self._asked.pop(key).set()

    async def _watch(self) -> None:
        """Stop when every endpoint was down for too long: a question would wait for its deadline, an hour."""
        down_s = 0.0
        while down_s < OUTAGE_S:
            await asyncio.sleep(LOOK_S)
            down_s = down_s + LOOK_S if self._client.down else 0.0
        self.stop(
            f"{self._model.model} has not answered for {OUTAGE_S:.0f} s; the last failure: {self._client.failures}. "
            "Start or fix the server"
        )

    def _usd(self, answer: CachedAnswer) -> float:
        return self._client.budget.usd(answer.model, answer.usage)

    def _count(self, failure: JudgeFailure) -> None:
        """Stop on a failure that all further questions would share."""
        if failure.kind not in self._logged:
            self._logged.add(failure.kind)
            logger.warning(
                "%s gave no usable answer (further failures of this kind are not logged): %s",
                *(self._model.model, failure),
            )
        if failure.kind == "budget":
            self.stop(
                "the budget is used up: what is left would not pay for an answer of sampling.max_tokens. Raise "
                "budget_usd; money that other processes have left is then shared. The "
                f"refused request: {failure}"
            )
            raise Stopped(self._why or "") from failure
        self._in_vain += 1
        if self._in_vain >= self._patience:
            self._put(*DOUBT)
            self.stop(
                f"{self._model.model} gave no usable answer to {plural(self._in_vain, 'question')} in a row; the last: "
                f"{failure}. Fix the model or its prompt, or raise `patience`"
            )
            raise Stopped(self._why or "") from failure
