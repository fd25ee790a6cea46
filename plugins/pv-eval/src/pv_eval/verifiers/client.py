"""Client of a verifier behind an OpenAI-compatible endpoint, through the client of pv-judge.

Each answer is on disk before it is used. Ctrl-C sends no more requests and waits for those in flight; a second Ctrl-C
leaves at once. The same command resumes the run, and asks again only for what failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pv_data.asking.asker import Stopped
from pv_data.asking.settings import Model
from pv_data.export.prompt import VerifierPrompt
from pv_data.serving.served import LONG_S
from pv_eval.logit import verdict_logit
from pv_eval.request import Request, Sampling
from pv_eval.sets.base import messages_of
from pv_eval.verifiers.progress import Progress
from pv_eval.verifiers.trace_cache import OF_THE_MODEL, OF_THE_PROMPT, Trace, TraceCache
from pv_eval.votes import Pair
from pv_judge.answer import JudgeFailure, Messages
from pv_judge.budget import BudgetKeeper
from pv_judge.client import JudgeClient
from pv_judge.config import read_config
from pv_judge.pages.text import plural
from pv_judge.processes import in_loop
from pv_judge.scoring.command import read_options
from pv_rl.errors import ConfigError, SetupError
from pv_verdicts import VerdictFormat

__all__ = ["Question", "Traces", "ask_all", "client_settings", "look_up"]

PATIENCE = 50
"""This many failed requests in a row end the run; failures of the model or of a prompt are not counted."""
WATCH_S = 1.0
BYTES_A_TOKEN = 1_000
"""Of an answer with log-probabilities: a token with its alternatives takes about 600."""

Traces: TypeAlias = "dict[tuple[str, int], Trace]"
"""By pair id and number of the sample."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A trace to ask for."""

    pair: Pair
    sample: int
    messages: Messages
    key: str
    """Of the messages, see `TraceCache.messages_key`."""
    twins: tuple[str, ...] = ()
    """Ids of further pairs with the same messages, such as other gradings of the proof: they get the same trace."""


def client_settings(
    request: Request,
    url: str,
    name: str,
    *,
    concurrency: int,
    own: bool = False,
    revision: str = "",
    fields: Mapping[str, Any] | None = None,
) -> Model:
    """Settings of the client: defaults, and the user's (`--client`) over them.

    Args:
        name: the model's name at its server.
        concurrency: of requests, unless the user gives another.
        own: whether this command started the server.
        revision: of the model.
        fields: further fields of a request.

    Raises:
        ConfigError: a setting of the user is unknown or out of bounds.
    """
    patient = {"timeouts": {"first_byte_s": LONG_S, "total_s": LONG_S}, "deadline_s": LONG_S} if own else {}
    settings: dict[str, Any] = {
        "endpoints": [{"url": url, "model": name, "extra_body": dict(fields or {})}],
        "sampling": request.sampling.fields(),
        "limits": {"concurrency": concurrency},
        "revision": revision,
        **patient,
    }
    if request.sampling.logits:
        settings["max_answer_bytes"] = BYTES_A_TOKEN * request.sampling.max_tokens + 1_000_000
    for part, value in read_options(None, request.client).items():
        if part == "endpoints":
            raise ConfigError(
                "--client endpoints is not supported: --verifier and --model name the endpoint. Set its other fields "
                "by --client endpoint.NAME=VALUE"
            )
        if part == "endpoint":
            settings["endpoints"][0].update(value)
        elif isinstance(value, dict) and isinstance(settings.get(part), dict):
            settings[part] = {**settings[part], **value}
        else:
            settings[part] = value
    return read_config(settings, Model, "client")


def look_up(
    pairs: Sequence[Pair],
    prompt: VerifierPrompt,
    n: int,
    cache: TraceCache,
    state: Progress,
    form: VerdictFormat,
) -> tuple[Traces, list[Question]]:
    """The cached traces, and the questions for the others.

    Sample 0 of all pairs comes first, so that a run that is stopped early has covered the whole set.
    """
    state.total = len(pairs) * n
    found: Traces = {}
    missing: list[Question] = []
    asked = [(pair, messages_of(pair, prompt, form)) for pair in pairs]
    alike: dict[str, list[tuple[Pair, Messages]]] = {}
    for pair, messages in asked:
        alike.setdefault(cache.messages_key(messages), []).append((pair, messages))
    for sample in range(n):
        for key, group in alike.items():
            known, (pair, messages) = cache.get(key, sample), group[0]
            names = [one.pair_id for one, _ in group]
            if known is None:
                twins = tuple(names[1:])
                missing.append(Question(pair=pair, sample=sample, messages=messages, key=key, twins=twins))
                continue
            for name in names:
                found[name, sample] = known
                state.known += 1
                _count(state, known)
    return found, missing


def _count(state: Progress, trace: Trace) -> None:
    state.done += 1
    if trace.missing:
        state.failures[trace.missing] += 1


def ask_all(
    questions: Sequence[Question],
    model: Model,
    sampling: Sampling,
    cache: TraceCache,
    state: Progress,
    *,
    patience: int = PATIENCE,
    gone: Callable[[], str] = lambda: "",
) -> Traces:
    """A trace, or why it is missing, for every question.

    Args:
        model: settings that include the sampling; the model's own cache is not used.
        state: updated while it runs.
        patience: see `PATIENCE`.
        gone: why the server will never answer again, checked each second; empty while it may.

    Raises:
        Stopped: the run ends early: by the user, the budget, or a server that does not answer. Answers are kept.
        ConfigError: the environment lacks an API key.
        CacheUnavailable: (an OSError) a trace could not be kept; the run stops so as not to pay for it twice.
    """
    run = _Run(model, sampling, cache, state, patience)
    asyncio.run(run.ask_all(questions, gone))
    return run.found


class _Run:
    """Asks the questions, as many at a time as the model's limits allow."""

    def __init__(
        self, model: Model, sampling: Sampling, cache: TraceCache, state: Progress, patience: int
    ) -> None:
        self.found: Traces = {}
        self._budget = BudgetKeeper(model.budget, model.prices)
        self._client = JudgeClient(model, self._budget)
        self._at_once = model.at_once
        self._sampling = sampling
        self._cache = cache
        self._state = state
        self._patience = patience
        self._in_vain = 0
        self._why = ""

    async def ask_all(self, questions: Sequence[Question], gone: Callable[[], str]) -> None:
        left = iter(questions)
        number = min(self._at_once, len(questions))
        workers = [asyncio.ensure_future(self._work(left)) for _ in range(number)]

        def leave() -> None:
            for worker in workers:
                worker.cancel()

        watching = asyncio.ensure_future(self._watch(gone, leave))
        try:
            with _signals(self._stop, leave):
                await asyncio.gather(*workers)
        except asyncio.CancelledError:
            self._stop("it was stopped")
        finally:
            watching.cancel()
            leave()
            await asyncio.gather(*workers, watching, return_exceptions=True)
            await self._client.aclose()
        if self._why:
            done = f"{self._state.done} of {plural(self._state.total, 'trace')} are there"
            raise Stopped(f"{self._why}. {done}; run the same command again to resume")

    async def _watch(self, gone: Callable[[], str], leave: Callable[[], None]) -> None:
        """Without it a question waits for a dead server until its deadline, a day for a server of our own."""
        while not (why := gone()):
            await asyncio.sleep(WATCH_S)
        self._stop(why)
        leave()

    async def _work(self, left: Iterator[Question]) -> None:
        for question in left:
            if self._why:
                return
            trace = await self._ask(question)
            if trace is None:
                return
            for name in (question.pair.pair_id, *question.twins):
                self.found[name, question.sample] = trace
                _count(self._state, trace)

    async def _ask(self, question: Question) -> Trace | None:
        """The trace, which is kept before it is used; None where the run ends."""
        seed = self._sampling.seed_of(question.pair.pair_id, question.sample)
        try:
            answer = await self._client.ask(
                question.messages, seed=(lambda _: seed) if self._sampling.send_seed else None
            )
            usage = answer.usage
            logit = verdict_logit(answer.text, answer.logprobs) if self._sampling.logits else None
            tokens = usage.completion_tokens or None
            trace = Trace(text=answer.text, tokens=tokens, logit=logit, usage=usage)
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
        self._cache.put(question.key, question.sample, trace, usage)
        return trace

    def _failed(self, failure: JudgeFailure) -> Trace:
        if failure.kind in OF_THE_MODEL:
            self._in_vain = 0
            tokens = failure.usage.completion_tokens or None
            return Trace(text=failure.text, tokens=tokens, missing=failure.kind, usage=failure.usage)
        if failure.kind == "client_error" and "seed" in str(failure).lower() and self._sampling.send_seed:
            raise SetupError(
                f"the server refuses requests with a seed ({failure}). Use --no-send-seed; the samples are then not "
                "reproducible"
            ) from failure
        self._in_vain = 0 if failure.kind in OF_THE_PROMPT else self._in_vain + 1
        self._state.last_error = str(failure)
        if self._in_vain >= self._patience:
            self._stop(f"{plural(self._in_vain, 'request')} in a row failed; the last error: {failure}")
        return Trace(text=None, missing=failure.kind, usage=failure.usage)

    def _stop(self, why: str) -> None:
        self._why = self._why or why
        self._state.stopping = True


@contextlib.contextmanager
def _signals(stop: Callable[[str], None], leave: Callable[[], object]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM stops the run; a second one leaves at once."""
    asked = False

    def handle() -> None:
        nonlocal asked
        if asked:
            leave()
        asked = True
        stop("it was stopped")

    with in_loop((signal.SIGINT, signal.SIGTERM), handle):
        yield
