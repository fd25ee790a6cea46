"""Client of a replay: estimates what it would take to ask a judge about the rows of a ledger, then asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pv_judge.answer import Answer, JudgeFailure, Question, Usage
from pv_judge.budget import BudgetKeeper
from pv_judge.completion import estimate_tokens
from pv_judge.config import JudgeConfig
from pv_judge.fluency import Fluency, FluencyPrompt, parse_fluency
from pv_judge.rejudge.rows import Judgment
from pv_judge.response_cache import ResponseCache
from pv_judge.service import JudgeService, ServiceConfig

__all__ = ["Plan", "ask", "plan", "without_steps"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the asking would take."""

    rows: int
    known: int
    """Rows whose answer is in the cache."""
    calls: int
    """Questions that would be sent; a trace that comes twice is sent once."""
    prompt_tokens: int
    """At four characters a token."""
    completion_tokens: int
    usd: float | None
    """None where the model has no price."""


def without_steps(config: JudgeConfig) -> JudgeConfig:
    """The config without limits of a training step: there are no steps here. Those of the run hold."""
    return replace(config, budget=replace(config.budget, usd_per_step=None, calls_per_step=None))


async def plan(
    traces: Mapping[str, str], config: JudgeConfig, prompt: FluencyPrompt, answer_tokens: float
) -> Plan:
    """Look up what is known, and estimate the rest.

    Args:
        traces: by row id.
        config: of the judge to be asked.
        prompt: likewise.
        answer_tokens: that an answer takes on average.
    """
    cache = ResponseCache(config)
    unknown: dict[str, int] = {}
    known = 0
    for trace in traces.values():
        question = _question(prompt, trace)
        if await cache.get(question) is not None:
            known += 1
        else:
            unknown[trace] = estimate_tokens("".join(one["content"] for one in question.messages))
    prompt_tokens, completion_tokens = sum(unknown.values()), round(len(unknown) * answer_tokens)
    model = config.endpoints[0].model
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
    usd = BudgetKeeper(config.budget, config.prices).usd(model, usage)
    return Plan(
        rows=len(traces),
        known=known,
        calls=len(unknown),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        usd=usd if model in config.prices or not unknown else None,
    )


async def ask(
    traces: Mapping[str, str],
    config: JudgeConfig,
    prompt: FluencyPrompt,
    done: Callable[[], object] = lambda: None,
) -> dict[str, Judgment]:
    """A judgment for each row id; a failure is one too. `done` is called after each.

    Raises:
        ConfigError: a key is not in the environment.
    """
    service = JudgeService(ServiceConfig(judge=config))
    judgments: dict[str, Judgment] = {}
    waiting = iter(traces.items())  # shared: a question that waits for its turn would run into its deadline

    async def work() -> None:
        for row_id, trace in waiting:
            judgments[row_id] = _judgment(await service.ask(_question(prompt, trace)), not config.unpriced)
            done()

    workers = [asyncio.ensure_future(work()) for _ in range(min(config.limits.concurrency, len(traces)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await service.close()
    return judgments


def _question(prompt: FluencyPrompt, trace: str) -> Question:
    return Question(template=prompt.template, messages=prompt.messages(trace), parse=parse_fluency)


def _judgment(answer: Answer | JudgeFailure, priced: bool) -> Judgment:
    failed = isinstance(answer, JudgeFailure)
    said: Fluency | None = None if failed else answer.value
    return Judgment(
        fluent=said.fluent if said else None,
        confidence=said.confidence if said else None,
        text=answer.text or None,
        failure=answer.kind if failed else None,
        requests=answer.requests,
        prompt_tokens=answer.usage.prompt_tokens,
        completion_tokens=answer.usage.completion_tokens,
        usd=answer.usd if priced or not answer.requests else None,
        cached=not failed and answer.cached,
    )
