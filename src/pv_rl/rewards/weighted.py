"""Weighted sum of rewards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pv_rl.errors import ConfigError
from pv_rl.rewards.base import LabelKind, RewardInput, RewardOutput
from pv_rl.rewards.build import CheckedReward, build_reward

__all__ = ["Weighted"]


class Weighted:
    """`sum_k weight_k * reward_k`; without one of them there is none.

    Args:
        rewards: weight by name, for example `{verdict: 1.0, brevity: 0.1}`.
        options: the options of a reward, by its name.

    Raises:
        ConfigError: no reward, a weight that is no number, or options for a reward that is not in it.
    """

    def __init__(
        self, rewards: Mapping[str, float], options: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        options = options or {}
        if not isinstance(rewards, Mapping) or not rewards:
            raise ConfigError(f"rewards: {rewards!r}; give a weight by name, for example {{verdict: 1.0}}")
        if not isinstance(options, Mapping):
            raise ConfigError(f"options: {options!r}; give options by the name of a reward")
        for name, weight in rewards.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) < 1e300:
                raise ConfigError(f"rewards.{name}: {weight!r}; a weight is a number")
        if stray := set(options) - set(rewards):
            raise ConfigError(f"options for {', '.join(sorted(stray))}, which rewards gives no weight")
        self.parts: dict[str, tuple[float, CheckedReward]] = {
            name: (weight, build_reward(name, options.get(name))) for name, weight in rewards.items()
        }
        kinds: set[LabelKind] = {part.label_kind for _, part in self.parts.values()}
        self.label_kind: LabelKind = kinds.pop() if len(kinds) == 1 else "any"  # each part reads it then

    @property
    def metric_names(self) -> tuple[str, ...] | None:
        """None where a part does not say."""
        names: dict[str, None] = {}
        for name, (_, part) in self.parts.items():
            if part.metric_names is None:
                return None
            names |= dict.fromkeys((*part.metric_names, f"{name}_score"))
        return tuple(names)

    def prepare(self, router_address: str | None = None) -> None:
        for _, reward in self.parts.values():
            reward.prepare(router_address)

    async def score(self, sample: RewardInput) -> RewardOutput:
        """Metrics: those of the parts, the first one's where two have a name in common, and `NAME_score` of each."""
        outputs = await asyncio.gather(*(reward.score(sample) for _, reward in self.parts.values()))
        valid = all(output.valid for output in outputs)
        weights = [weight for weight, _ in self.parts.values()]
        total = sum(weight * output.score for weight, output in zip(weights, outputs, strict=True))
        metrics: dict[str, float] = {}
        for name, output in zip(self.parts, outputs, strict=True):
            metrics = {**output.metrics, **metrics, f"{name}_score": output.score}
        return RewardOutput(
            score=total if valid else 0.0,
            valid=valid,
            drop_group=any(output.drop_group for output in outputs),
            metrics=metrics,
        )
