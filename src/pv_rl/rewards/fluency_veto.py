"""Fluency veto: a degenerate trace earns nothing, whatever its verdict (the paper's Section 5.2).

The rules come first and take microseconds. If the config names a judge, it then judges the traces that passed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pv_rl.errors import ConfigError
from pv_rl.hookspecs import DegenerationRule
from pv_rl.installing import how_to_install
from pv_rl.plugins import JUDGES, nearest
from pv_rl.rewards.base import LabelKind, Prepared, Reward, RewardInput, RewardOutput, read_label
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.degeneration import find_anomalies, rules_from_config
from pv_rl.rewards.judge import Anomaly, Decision, Judge, Judgment, VetoRecord
from pv_rl.rewards.weighted import Weighted

__all__ = ["JUDGE_OPTIONS", "VETO_OPTIONS", "FluencyVeto", "judge_builder"]

VETO_OPTIONS = ("reward", "reward_options", "rules", "veto", "judge_unpaid")
"""Options of the veto itself; all others are the judge's."""
JUDGE_OPTIONS = ("judge", "prompt", "threshold", "on_failure", "on_budget", "halt", "ledger")
"""Options of the judge of `verdict_fluency`."""

logger = logging.getLogger("pv_rl")


class FluencyVeto:
    """Wraps a reward.

    Args:
        reward: what is vetoed.
        rules: those to apply, see `rules_from_config`.
        judge: asked about traces in which no rule finds anything; None: the rules alone.
        veto: a vetoed trace earns 0 (`zero`), or leaves the group baseline, the weights and the loss (`abstain`).
        judge_unpaid: whether a trace that earns nothing anyway is judged. False saves its call: with `zero` it gets 0
            either way. But a judge that fails then takes away rows that are right and none that are wrong.

    Raises:
        ConfigError: an option has a value that is not allowed.
    """

    def __init__(
        self,
        reward: Reward,
        rules: Sequence[DegenerationRule],
        judge: Judge | None = None,
        veto: Literal["zero", "abstain"] = "zero",
        judge_unpaid: bool = True,
    ) -> None:
        if veto not in ("zero", "abstain"):
            raise ConfigError(f"the option veto is {veto!r}; expected zero or abstain")
        if not isinstance(judge_unpaid, bool):
            raise ConfigError(f"the option judge_unpaid is {judge_unpaid!r}; expected true or false")
        if not judge_unpaid and veto == "abstain":
            raise ConfigError(
                "judge_unpaid: false goes with veto: zero alone, where a veto of 0 changes nothing"
            )
        self.reward = reward
        self.label_kind: LabelKind = getattr(reward, "label_kind", "verdict")
        self._kinds = {getattr(part, "label_kind", "verdict") for part in _parts(reward)}
        self.rules, self.judge = rules, judge
        self.veto, self.judge_unpaid = veto, judge_unpaid

    @classmethod
    def build(cls, make_judge: Callable[..., Judge] | None = None, /, **options: Any) -> FluencyVeto:
        """Build a veto from the options of a config: `VETO_OPTIONS`, and those of the judge.

        Args:
            make_judge: builds the judge from its options; None: that of `verdict_fluency`.

        Raises:
            ConfigError: an option is unknown, of a wrong type or out of bounds, or pv-judge is missing.
        """
        own = {name: options.pop(name) for name in VETO_OPTIONS if name in options}
        inner = build_reward(own.pop("reward", "verdict"), own.pop("reward_options", None))
        if any(isinstance(part.reward, FluencyVeto) for part in _parts(inner)):
            raise ConfigError(
                "the option reward names a reward that has a veto of its own, and a veto cannot be vetoed; name the "
                "reward inside it"
            )
        rules = own.pop("rules", None)
        rules = rules_from_config({} if rules is None else rules)
        make_judge = make_judge or judge_builder(options)
        return cls(inner, rules, make_judge(**options) if make_judge else None, **own)

    @property
    def metric_names(self) -> tuple[str, ...] | None:
        """None if the wrapped reward does not declare its own."""
        inner = getattr(self.reward, "metric_names", None)
        if inner is None:
            return None
        own = ("vetoed", "vetoed_by_judge", "judge_failed", "unjudged")
        return tuple(dict.fromkeys((*inner, *own, *(f"rule_{rule.name}" for rule in self.rules))))

    def prepare(self, router_address: str | None = None) -> None:
        for part in (self.judge, self.reward):
            if isinstance(part, Prepared):
                part.prepare(router_address)

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Metrics, each 0 or 1, after those of the wrapped reward: `vetoed`, `vetoed_by_judge`, `judge_failed` (no
        answer that can be used), `unjudged` (not asked: no call in the budget), and `rule_NAME` for each rule.
        """
        begin = time.time()
        if self.judge_unpaid:
            inner, found = await asyncio.gather(self.reward.score(sample), self._inspect(sample))
        else:
            inner = await self.reward.score(sample)
            found = await self._inspect(sample, ask=inner.valid and inner.score > 0)
        anomalies, judgment = found
        decision = "vetoed" if anomalies else judgment.decision if judgment else "fluent"
        output = self._apply(inner, decision, anomalies, judgment)
        if self.judge is not None:
            label = read_label(sample.label) if "verdict" in self._kinds else None
            row = VetoRecord(
                sample=sample,
                label=label,
                begin=begin,
                anomalies=anomalies,
                judgment=judgment,
                decision=decision,
                inner=inner,
                output=output,
            )
            await self.judge.record(row)
        return output

    async def _inspect(
        self, sample: RewardInput, ask: bool = True
    ) -> tuple[tuple[Anomaly, ...], Judgment | None]:
        """What the rules find, or what the judge says if they find nothing."""
        anomalies = tuple(find_anomalies(sample.response, self.rules))
        if anomalies or self.judge is None or not self.judge.asks or not ask:
            return anomalies, None
        return (), await self.judge.judge(sample)

    def _apply(
        self,
        inner: RewardOutput,
        decision: Decision,
        anomalies: tuple[Anomaly, ...],
        judgment: Judgment | None,
    ) -> RewardOutput:
        hit = {anomaly.rule for anomaly in anomalies}
        metrics = {
            **inner.metrics,
            "vetoed": float(decision == "vetoed"),
            "vetoed_by_judge": float(decision == "vetoed" and judgment is not None),
            "judge_failed": float(decision == "failed"),
            "unjudged": float(decision == "unjudged"),
            **{f"rule_{rule.name}": float(rule.name in hit) for rule in self.rules},
        }
        policy: str = "fail_open"
        if decision == "vetoed":
            policy = "fail_closed" if self.veto == "zero" else "abstain"
        elif judgment is not None and decision != "fluent":
            policy = judgment.policy
        if policy == "fail_open":
            return replace(inner, metrics=metrics)
        valid = inner.valid and policy == "fail_closed"
        return RewardOutput(
            score=min(0.0, inner.score) if valid else 0.0,  # a penalty is not lifted by being degenerate
            valid=valid,
            drop_group=inner.drop_group or policy == "drop_group",
            metrics=metrics,
        )


def judge_builder(options: Mapping[str, Any]) -> Callable[..., Judge] | None:
    """What builds the judge of `verdict_fluency`; None if no package adds it and `options` do not need it.

    Args:
        options: of the reward.

    Raises:
        ConfigError: an option is unknown, or names a judge and the package with the judge is not installed.
    """
    for name in options:
        if name not in (*VETO_OPTIONS, *JUDGE_OPTIONS):
            allowed = (*VETO_OPTIONS, *JUDGE_OPTIONS)
            raise ConfigError(
                f"verdict_fluency has no option {name!r}.{nearest(str(name), allowed)} Options: {', '.join(allowed)}"
            )
    if entry := JUDGES.find("fluency"):
        return entry.build
    if options.get("judge") is not None:
        left_out = "".join(f" Left out: {owner}: {why}." for owner, why in JUDGES.broken().items())
        raise ConfigError(
            "verdict_fluency.judge names an LLM judge, and the package pv-judge, which asks it, is not installed. "
            f"{how_to_install('pv-judge')}. Or leave the judge out (in a verl config: judge=rules) to use the rules "
            "alone." + left_out
        )
    if options.get("ledger") is not None:
        logger.warning("No ledger is written: the package pv-judge, which writes it, is not installed.")
    return None


def _parts(reward: Any) -> list[Any]:
    """The rewards that a weighted sum is made of, or the reward itself."""
    of = getattr(reward, "reward", reward)
    return [part for _, part in of.parts.values()] if isinstance(of, Weighted) else [reward]
