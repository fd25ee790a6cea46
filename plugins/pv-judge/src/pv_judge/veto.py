"""Judged veto: an LLM decides whether a trace is paid. Subclass `JudgedVeto` for a judge of your own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from pv_judge.answer import Answer, JudgeFailure, Messages, Question
from pv_judge.config import STRICT, JudgeConfig, read_config
from pv_judge.fluency import Fluency, FluencyPrompt, parse_fluency
from pv_judge.ledger import LedgerRow
from pv_judge.ray_service import SharedService, prepare_service, shared_service
from pv_judge.service import Halt, ServiceConfig
from pv_rl.errors import ConfigError
from pv_rl.rewards.base import RewardInput
from pv_rl.rewards.fluency_veto import FluencyVeto
from pv_rl.rewards.judge import FailurePolicy, Judgment, VetoRecord
from pv_rl.verdict import parse_verdict

__all__ = ["FluencyJudge", "JudgeOptions", "JudgedVeto"]


@settings(frozen=True, kw_only=True, config=STRICT)
class JudgeOptions:
    """The options of a reward that are its judge's."""

    judge: JudgeConfig | None = None
    """None: the rules alone; rows are still written to the ledger."""
    prompt: str | None = None
    """A prompt file that replaces the class's prompt."""
    threshold: float = Field(default=0.5, ge=0, le=1)
    """How sure of an anomaly the judge has to be."""
    on_failure: FailurePolicy = "abstain"
    on_budget: FailurePolicy = "fail_open"
    """The same, for a row that the budget leaves no call for."""
    halt: Halt = Field(default_factory=Halt)
    ledger: str | None = None
    """Folder of the ledger; none: nothing is written down."""


@dataclass(frozen=True)
class _Reply:
    answer: Answer | JudgeFailure
    latency_s: float
    """Of the question."""


class JudgedVeto:
    """A `pv_rl.rewards.judge.Judge` that asks an LLM. A subclass sets `name`, `prompt`, `parse` and `decide`, and
    becomes a reward by `RewardEntry(name=..., build=TheSubclass.reward, vetoes=True)`.

    The trace is enclosed in two lines with a mark that it cannot contain, see `pv_judge.fluency`. Options, cache,
    budget, failure policies, ledger and metrics are those of `verdict_fluency`.
    """

    name: ClassVar[str]
    """A word for the prompt, in cache keys and ledger rows."""
    prompt: ClassVar[str]
    """The system message: what to look for in the trace, and the form of the answer."""
    options_class: ClassVar[type[JudgeOptions]] = JudgeOptions

    def __init__(self, options: JudgeOptions) -> None:
        self.options = options
        self.instructions = (
            FluencyPrompt.load(options.prompt)
            if options.prompt
            else FluencyPrompt(name=self.name, text=self.prompt)
        )
        self._services: dict[str | None, ServiceConfig] = {}

    @staticmethod
    def parse(text: str) -> Any:
        """Read the LLM's answer. Static, so that it can be sent to the process that asks.

        Raises:
            JudgeFailure: (kind `invalid_json` or `wrong_schema`) the answer does not have the form asked for.
        """
        raise NotImplementedError

    def decide(self, value: Any) -> bool:
        """Whether a trace is vetoed, from what `parse` returned."""
        raise NotImplementedError

    def opinion(self, value: Any) -> tuple[bool | None, float | None]:
        """The columns `judge_fluent` and `confidence` of the ledger, None where the answer has no such thing."""
        return not self.decide(value), None

    @classmethod
    def build(cls, **options: Any) -> JudgedVeto:
        """Build the judge from its options (`JudgeOptions`).

        Raises:
            ConfigError: an option is unknown, of a wrong type or out of bounds.
        """
        return cls(read_config(options, cls.options_class, "reward_kwargs"))

    @classmethod
    def reward(cls, **options: Any) -> FluencyVeto:
        """Build a reward that this judge vetoes: the options of `verdict_fluency`, see docs/guides/rewards.md.

        Raises:
            ConfigError: an option is unknown, of a wrong type or out of bounds.
        """
        return FluencyVeto.build(cls.build, **options)

    @property
    def asks(self) -> bool:
        return self.options.judge is not None

    def prepare(self, router_address: str | None = None) -> None:
        prepare_service(self._service_config(router_address))

    def messages(self, sample: RewardInput) -> Messages | None:
        """The question about a row: the instructions and the trace. A subclass may show more of the row, see
        `FluencyPrompt.messages`, or return None where there is nothing to ask: the trace is not vetoed then."""
        return self.instructions.messages(sample.response)

    async def judge(self, sample: RewardInput) -> Judgment | None:
        messages = self.messages(sample)
        if messages is None:
            return None
        question = Question(template=self.instructions.template, messages=messages, parse=self.parse)
        begin = time.monotonic()
        answer = await self._service(sample).ask(question)
        reply = _Reply(answer, time.monotonic() - begin)
        if isinstance(answer, JudgeFailure):
            if answer.kind == "budget":
                return Judgment(decision="unjudged", policy=self.options.on_budget, answer=reply)
            return Judgment(decision="failed", policy=self.options.on_failure, answer=reply)
        vetoed = self.decide(answer.value)
        if not isinstance(vetoed, bool):
            raise TypeError(
                f"decide of the judge {self.name!r} returned {vetoed!r}; it returns True or False"
            )
        return Judgment(decision="vetoed" if vetoed else "fluent", answer=reply)

    async def record(self, row: VetoRecord) -> None:
        """Write a row to the ledger, and count it for the policy `halt`."""
        sample, judgment = row.sample, row.judgment
        answered = judgment is not None and judgment.decision in ("fluent", "vetoed")
        # Without a judgment the rules decided, or there was nothing to ask.
        by = "rules" if judgment is None else "judge" if answered else "policy"
        ledger_row = LedgerRow(
            step=sample.step,
            uid=sample.uid,
            session=sample.session,
            data_source=sample.data_source,
            trace=sample.response,
            rules=row.anomalies,
            decision=row.decision,
            decided_by=by,
            verdict=parse_verdict(sample.response),
            label=row.label,
            inner_score=row.inner.score if row.inner.valid else None,
            score=row.output.score,
            valid=row.output.valid,
            **self._columns(judgment.answer if judgment else None),
        )
        failed = None
        if judgment is not None and (answered or judgment.policy == "halt"):
            failed = not answered
        await self._service(sample).record(ledger_row, row.begin, failed)

    def _columns(self, reply: _Reply | None) -> Mapping[str, Any]:
        """The columns of the ledger that are about the answer."""
        if reply is None:
            return {"usd": 0.0}
        answer = reply.answer
        unpriced = self.options.judge is not None and self.options.judge.unpriced
        columns = {
            "judge_text": answer.text,
            "template": self.instructions.template,
            "latency_s": reply.latency_s,
            "requests": answer.requests,
            "prompt_tokens": answer.usage.prompt_tokens,
            "completion_tokens": answer.usage.completion_tokens,
            "usd": 0.0 if not answer.requests else None if unpriced else answer.usd,
        }
        if isinstance(answer, JudgeFailure):
            return {**columns, "failure": answer.kind, "failure_text": str(answer)}
        fluent, confidence = self.opinion(answer.value)
        return {
            **columns,
            "judge_model": answer.model,
            "judge_fluent": fluent,
            "confidence": confidence,
            "cached": answer.cached,
        }

    def _service(self, sample: RewardInput) -> SharedService:
        return shared_service(self._service_config(sample.router_address))

    def _service_config(self, router_address: str | None) -> ServiceConfig:
        if router_address not in self._services:
            options = self.options
            halting = "halt" in (options.on_failure, options.on_budget)
            self._services[router_address] = ServiceConfig(
                judge=_with_router(options.judge, router_address),
                ledger=options.ledger,
                halt=options.halt if halting else None,
            )
        return self._services[router_address]


class FluencyJudge(JudgedVeto):
    """The judge of `verdict_fluency`: vetoes malformed traces, see `pv_judge.fluency`."""

    name = "fluency"
    prompt = FluencyPrompt.load().text

    @staticmethod
    def parse(text: str) -> Fluency:
        return parse_fluency(text)

    def decide(self, value: Fluency) -> bool:
        return value.vetoes(self.options.threshold)

    def opinion(self, value: Fluency) -> tuple[bool | None, float | None]:
        return value.fluent, value.confidence


def _with_router(judge: JudgeConfig | None, address: str | None) -> JudgeConfig | None:
    """The judge with the address of verl's own generative reward model where its config says `router`."""
    if judge is None or all(endpoint.url != "router" for endpoint in judge.endpoints):
        return judge
    if not address:
        raise ConfigError(
            "the judge's url is `router`, and this run has no generative reward model: set "
            "reward.reward_model.enable=true with reward.reward_model.enable_resource_pool=true, or give another url"
        )
    endpoints = tuple(
        replace(one, url=f"http://{address}/v1") if one.url == "router" else one for one in judge.endpoints
    )
    return replace(judge, endpoints=endpoints)
