"""Votes of a model behind an OpenAI-compatible endpoint, asked through pv_rl's judge client.

Each answer is on disk before it is used. Ctrl-C sends nothing more and waits for what is under way; a second one leaves
at once. The same command goes on where it was, and asks again only for what failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from pv_data.asking.asker import Stopped
from pv_data.asking.seeded import ATTEMPTS, Attempts, SeededClient
from pv_data.asking.settings import Model
from pv_eval.logit import verdict_logit
from pv_eval.sampling import Sampling
from pv_eval.verifiers.asked import Asked, Progress, Traces
from pv_eval.verifiers.remembered import MODEL_S_OWN, Remembered
from pv_eval.verifiers.stopping import stopping
from pv_eval.verifiers.trace import Trace
from pv_judge.answer import JudgeFailure
from pv_judge.budget import BudgetKeeper
from pv_rl.errors import SetupError

__all__ = ["ask_all"]

PATIENCE = 50
"""So many requests in a row that failed, and not by the model's doing, end the run."""
WATCH_S = 1.0


def ask_all(
    wanted: Sequence[Asked],
    model: Model,
    sampling: Sampling,
    remembered: Remembered,
    state: Progress,
    *,
    patience: int = PATIENCE,
    gone: Callable[[], str] = lambda: "",
) -> Traces:
    """A trace, or why there is none, for all that is wanted.

    Args:
        model: with the sampling in it; its own cache is not used.
        state: filled while it runs.
        patience: see `PATIENCE`.
        gone: why the server will never answer again, looked at each second; empty while it may.

    Raises:
        Stopped: the run ends early: by the user, the budget, or a server that gives nothing. What came is kept.
        ConfigError: a key that is not in the environment.
        CacheUnavailable: (an OSError) a trace could not be kept; it is better to stop than to pay for it twice.
    """
    found: Traces = {}
    asyncio.run(_Sampler(model, sampling, remembered, found, state, patience).run(wanted, gone))
    return found


class _Sampler:
    """Asks for what is wanted, so many at a time as the model's limits say."""

    def __init__(
        self,
        model: Model,
        sampling: Sampling,
        remembered: Remembered,
        found: Traces,
        state: Progress,
        patience: int,
    ) -> None:
        self._budget = BudgetKeeper(model.budget, model.prices)
        self._client = SeededClient(model, self._budget)
        self._at_once = model.at_once
        self._sampling = sampling
        self._remembered = remembered
        self._found = found
        self._state = state
        self._patience = patience
        self._in_vain = 0
        self._why = ""

    async def run(self, wanted: Sequence[Asked], gone: Callable[[], str]) -> None:
        left = iter(wanted)
        workers = [asyncio.ensure_future(self._work(left)) for _ in range(min(self._at_once, len(wanted)))]

        def leave() -> None:
            for worker in workers:
                worker.cancel()

        watching = asyncio.ensure_future(self._watch(gone, leave))
        try:
            with stopping(self._stop, leave):
                await asyncio.gather(*workers)
        except asyncio.CancelledError:
            self._stop("it was stopped")
        finally:
            watching.cancel()
            leave()
            await asyncio.gather(*workers, watching, return_exceptions=True)
            await self._client.aclose()
        if self._why:
            state = self._state
            raise Stopped(
                f"{self._why}. {state.done} of {state.total} traces are there; the same command goes on from here"
            )

    async def _watch(self, gone: Callable[[], str], leave: Callable[[], None]) -> None:
        """Symptom without it: a question waits for a server that has died until its deadline, a day for our own."""
        while not (why := gone()):
            await asyncio.sleep(WATCH_S)
        self._stop(why)
        leave()

    async def _work(self, left: Iterator[Asked]) -> None:
        for one in left:
            if self._why:
                return
            trace = await self._ask(one)
            if trace is None:
                return
            self._found[one.pair.pair_id, one.sample] = trace
            self._state.done += 1
            if trace.missing:
                self._state.failures[trace.missing] += 1

    async def _ask(self, one: Asked) -> Trace | None:
        """The trace; None where the run ends. It is kept before it is used."""
        if self._sampling.send_seed:
            seed = self._sampling.seed_of(one.pair.pair_id, one.sample)
            ATTEMPTS.set(Attempts(seed=lambda _: seed))
        try:
            answer = await self._client.ask(one.messages)
            usage = answer.usage
            logit = verdict_logit(answer.text, answer.logprobs) if self._sampling.logits else None
            trace = Trace(text=answer.text, tokens=usage.completion_tokens or None, logit=logit)
            self._in_vain = 0
        except JudgeFailure as failure:
            if failure.kind == "budget":
                self._stop(str(failure))
                return None
            usage, trace = failure.usage, self._failed(failure)
        finally:
            spent = self._budget.spent.in_run
            self._state.usd = None if self._client.config.unpriced else spent.usd
            self._state.calls, self._state.tokens = spent.calls, spent.tokens
        self._remembered.put(one.key, one.sample, trace, usage)
        return trace

    def _failed(self, failure: JudgeFailure) -> Trace:
        if failure.kind in MODEL_S_OWN:
            self._in_vain = 0
            return Trace(
                text=failure.text, tokens=failure.usage.completion_tokens or None, missing=failure.kind
            )
        if failure.kind == "client_error" and "seed" in str(failure).lower() and self._sampling.send_seed:
            raise SetupError(
                f"the server refuses requests with a seed ({failure}); ask without one by --no-send-seed. Samples "
                "cannot be repeated then"
            ) from failure
        self._in_vain += 1
        if self._in_vain >= self._patience:
            self._stop(f"{self._in_vain} requests in a row failed, the last so: {failure}")
        return Trace(text=None, missing=failure.kind)

    def _stop(self, why: str) -> None:
        self._why = self._why or why
        self._state.stopping = True
