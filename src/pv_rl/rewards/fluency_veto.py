"""The fluency veto: a degenerate trace earns nothing, whatever its verdict (the paper's Section 5.2).

Rules first, in microseconds; then, where the config names one, an LLM judge. A judge that fails is no verdict on the
trace: what happens then is one explicit policy.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from pydantic import Field
from pydantic.dataclasses import dataclass as settings

from pv_judge.answer import Answer, JudgeFailure, Question
from pv_judge.config import STRICT, JudgeConfig, read_config
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.ledger import LedgerRow
from pv_judge.ray_service import SharedService, prepare_service, shared_service
from pv_judge.service import Halt, ServiceConfig
from pv_rl.errors import ConfigError
from pv_rl.rewards.base import LabelKind, Prepared, Reward, RewardInput, RewardOutput, read_label
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.degeneration import Anomaly, find_anomalies, rules_from_config
from pv_rl.rewards.weighted import Weighted
from pv_rl.verdict import parse_verdict

__all__ = ["FailurePolicy", "FluencyVeto", "VetoConfig"]

FailurePolicy: TypeAlias = Literal["abstain", "drop_group", "fail_open", "fail_closed", "halt"]
"""What a row without an answer of the judge gets:

- `abstain`: no reward. It leaves its group's baseline, the weights and the loss;
- `drop_group`: its whole group does;
- `fail_open`: the reward that it has without the judge;
- `fail_closed`: 0, as if it were vetoed;
- `halt`: as `abstain`, and the run stops with a checkpoint once too many have failed (`halt`).
"""


@settings(frozen=True, kw_only=True, config=STRICT)
class VetoConfig:
    """The options of `verdict_fluency`."""

    reward: str = "verdict"
    """The reward that may be vetoed, by name."""
    reward_options: dict[str, Any] = Field(default_factory=dict)
    rules: dict[str, Any] = Field(default_factory=dict)
    """Thresholds by rule, `false` to switch one off; see docs/rules.md."""
    judge: JudgeConfig | None = None
    """None: the rules alone."""
    prompt: str | None = None
    """A prompt file in the place of ours."""
    threshold: float = Field(default=0.5, ge=0, le=1)
    """How sure of an anomaly the judge has to be."""
    veto: Literal["zero", "abstain"] = "zero"
    """A vetoed trace earns 0, or leaves the group baseline, the weights and the loss."""
    judge_unpaid: bool = True
    """Whether a trace that earns nothing anyway is judged. `false` saves its call: with `veto: zero` it gets 0 either
    way. But a judge that fails then takes away rows that are right and none that are wrong."""
    on_failure: FailurePolicy = "abstain"
    on_budget: FailurePolicy = "fail_open"
    """The same, for a row that the budget leaves no call for."""
    halt: Halt = Field(default_factory=Halt)
    ledger: str | None = None
    """Folder of the ledger; none: nothing is written down."""

    def __post_init__(self) -> None:
        if not self.judge_unpaid and self.veto == "abstain":
            raise ValueError(
                "judge_unpaid: false goes with veto: zero alone, where a veto of 0 changes nothing"
            )


@dataclass(frozen=True)
class Inspection:
    """What is known of a trace's fluency."""

    decision: Literal["fluent", "vetoed", "failed", "unjudged"]
    by: Literal["rules", "judge", "policy"]
    anomalies: tuple[Anomaly, ...] = ()
    answer: Answer | JudgeFailure | None = None
    latency_s: float = 0.0
    """Of the question."""


class FluencyVeto:
    """Wraps a reward: `veto` says what a degenerate trace gets in its place.

    Args:
        reward: what is vetoed.
        config: see `VetoConfig`.
    """

    def __init__(self, reward: Reward, config: VetoConfig) -> None:
        self.reward = reward
        self.label_kind: LabelKind = getattr(reward, "label_kind", "verdict")
        self._kinds = {getattr(part, "label_kind", "verdict") for part in _parts(reward)}
        self.config = config
        self.prompt = FluencyPrompt.load(config.prompt)
        self.rules = rules_from_config(config.rules)
        self._services: dict[str | None, ServiceConfig] = {}

    @property
    def metric_names(self) -> tuple[str, ...] | None:
        """None where the wrapped reward does not say."""
        inner = getattr(self.reward, "metric_names", None)
        if inner is None:
            return None
        own = ("vetoed", "vetoed_by_judge", "judge_failed", "unjudged")
        return tuple(dict.fromkeys((*inner, *own, *(f"rule_{rule.name}" for rule in self.rules))))

    @classmethod
    def build(cls, **options: Any) -> FluencyVeto:
        """From the options of a config.

        Raises:
            ConfigError: an option that is unknown, of a wrong type or out of bounds.
        """
        config = read_config(options, VetoConfig, "verdict_fluency")
        inner = build_reward(config.reward, config.reward_options)
        if any(isinstance(part.reward, FluencyVeto) for part in _parts(inner)):
            raise ConfigError(
                "verdict_fluency.reward: a veto cannot be vetoed; name the reward that is meant"
            )
        return cls(inner, config)

    def prepare(self, router_address: str | None = None) -> None:
        prepare_service(self._service_config(router_address))
        if isinstance(self.reward, Prepared):
            self.reward.prepare(router_address)

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Metrics, each 0 or 1, after those of the wrapped reward: `vetoed`, `vetoed_by_judge`, `judge_failed` (no
        answer that can be used), `unjudged` (not asked: no call in the budget), and `rule_NAME` for each rule.
        """
        begin = time.time()
        if self.config.judge_unpaid:
            output, finding = await asyncio.gather(self.reward.score(sample), self._inspect(sample))
        else:
            output = await self.reward.score(sample)
            paid = output.valid and output.score > 0
            finding = await self._inspect(sample, ask=paid)
        handed_on = self._apply(output, finding)
        await self._record(sample, output, handed_on, finding, begin)
        return handed_on

    async def _inspect(self, sample: RewardInput, ask: bool = True) -> Inspection:
        anomalies = tuple(find_anomalies(sample.response, self.rules))
        if anomalies:
            return Inspection("vetoed", "rules", anomalies)
        if self.config.judge is None or not ask:
            return Inspection("fluent", "rules")
        question = Question(
            template=self.prompt.template, messages=self.prompt.messages(sample.response), parse=parse_fluency
        )
        begin = time.monotonic()
        answer = await self._service(sample).ask(question)
        seconds = time.monotonic() - begin
        if isinstance(answer, JudgeFailure):
            decision = "unjudged" if answer.kind == "budget" else "failed"
            return Inspection(decision, "policy", answer=answer, latency_s=seconds)
        decision = "vetoed" if answer.value.vetoes(self.config.threshold) else "fluent"
        return Inspection(decision, "judge", answer=answer, latency_s=seconds)

    def _apply(self, output: RewardOutput, finding: Inspection) -> RewardOutput:
        hit = {anomaly.rule for anomaly in finding.anomalies}
        metrics = {
            **output.metrics,
            "vetoed": float(finding.decision == "vetoed"),
            "vetoed_by_judge": float(finding.decision == "vetoed" and finding.by == "judge"),
            "judge_failed": float(finding.decision == "failed"),
            "unjudged": float(finding.decision == "unjudged"),
            **{f"rule_{rule.name}": float(rule.name in hit) for rule in self.rules},
        }
        fate: str = "fail_open"
        if finding.decision == "vetoed":
            fate = "fail_closed" if self.config.veto == "zero" else "abstain"
        elif finding.decision in ("failed", "unjudged"):
            fate = _policy(self.config, finding)
        if fate == "fail_open":
            return RewardOutput(
                score=output.score, valid=output.valid, drop_group=output.drop_group, metrics=metrics
            )
        valid = output.valid and fate == "fail_closed"
        return RewardOutput(
            score=min(0.0, output.score) if valid else 0.0,  # a penalty is not lifted by being degenerate
            valid=valid,
            drop_group=output.drop_group or fate == "drop_group",
            metrics=metrics,
        )

    async def _record(
        self,
        sample: RewardInput,
        inner: RewardOutput,
        output: RewardOutput,
        finding: Inspection,
        begin: float,
    ) -> None:
        answer = finding.answer
        usage = answer.usage if answer else None
        judged = isinstance(answer, Answer)
        row = LedgerRow(
            step=sample.step,
            uid=sample.uid,
            session=sample.session,
            data_source=sample.data_source,
            trace=sample.response,
            rules=finding.anomalies,
            judge_text=answer.text if answer else None,
            judge_model=answer.model if judged else None,
            template=self.prompt.template if answer else None,
            decision=finding.decision,
            decided_by=finding.by,
            failure=answer.kind if isinstance(answer, JudgeFailure) else None,
            failure_text=str(answer) if isinstance(answer, JudgeFailure) else None,
            judge_fluent=answer.value.fluent if judged else None,
            confidence=answer.value.confidence if judged else None,
            verdict=parse_verdict(sample.response),
            label=read_label(sample.label) if "verdict" in self._kinds else None,
            inner_score=inner.score if inner.valid else None,
            score=output.score,
            valid=output.valid,
            latency_s=finding.latency_s,
            requests=answer.requests if answer else 0,
            prompt_tokens=usage.prompt_tokens if usage else 0,
            completion_tokens=usage.completion_tokens if usage else 0,
            usd=self._usd(answer),
            cached=judged and answer.cached,
        )
        failed = None if answer is None else finding.by == "policy"
        if failed and _policy(self.config, finding) != "halt":
            failed = None
        await self._service(sample).record(row, begin, failed)

    def _usd(self, answer: Answer | JudgeFailure | None) -> float | None:
        """None where nobody knows, because a model has no price."""
        if answer is None or not answer.requests:
            return 0.0
        return None if self.config.judge and self.config.judge.unpriced else answer.usd

    def _service(self, sample: RewardInput) -> SharedService:
        return shared_service(self._service_config(sample.router_address))

    def _service_config(self, router_address: str | None) -> ServiceConfig:
        if router_address not in self._services:
            halting = "halt" in (self.config.on_failure, self.config.on_budget)
            self._services[router_address] = ServiceConfig(
                judge=_with_router(self.config.judge, router_address),
                ledger=self.config.ledger,
                halt=self.config.halt if halting else None,
            )
        return self._services[router_address]


def _parts(reward: Any) -> list[Any]:
    """The rewards that a weighted sum is made of, or the reward itself."""
    of = getattr(reward, "reward", reward)
    return [part for _, part in of.parts.values()] if isinstance(of, Weighted) else [reward]


def _policy(config: VetoConfig, finding: Inspection) -> FailurePolicy:
    """What a row without an answer gets."""
    return config.on_budget if finding.decision == "unjudged" else config.on_failure


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
