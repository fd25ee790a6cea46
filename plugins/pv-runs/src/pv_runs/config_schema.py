"""JSON schema of a run's config: what pv-rl reads of it; verl's own keys are free."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pv_judge.config import STRICT
from pv_judge.json_schema import json_schema, part_of
from pv_judge.veto import JudgeOptions
from pv_rl.errors import ConfigError
from pv_runs.plan.assumed import Assumed
from pv_runs.plan.setup import Gpu
from pv_runs.sentinel.alarm_policy import AlarmPolicyConfig
from pv_runs.sentinel.settings import SentinelConfig

__all__ = ["config_schema"]

OPEN = ConfigDict(extra="allow", use_attribute_docstrings=True)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Recipe:
    """The weighting, see docs/concepts/weightings.md."""

    name: str = ""
    eta: float = Field(default=0.6, ge=0, le=1)
    """Share of the weight that goes by response; the rest goes by token."""
    scope: Literal["prompt", "batch"] = "prompt"


@dataclass(frozen=True, kw_only=True, config=OPEN)
class RewardKwargs(JudgeOptions):  # pyright: ignore[reportGeneralTypeIssues]
    """Options of the reward."""


@dataclass(frozen=True, kw_only=True, config=OPEN)
class RewardFunction:
    """A reward of pv-rl or of a plugin."""

    path: str = "pkg://pv_rl.rewards.named"
    name: str = "verdict_fluency"
    reward_kwargs: RewardKwargs = Field(default_factory=RewardKwargs)


@dataclass(frozen=True, kw_only=True, config=OPEN)
class Reward:
    custom_reward_function: RewardFunction = Field(default_factory=RewardFunction)


@dataclass(frozen=True, kw_only=True, config=OPEN)
class Cluster:
    """What `cluster=NAME` sets."""

    nodes: int = Field(default=1, ge=1)
    gpus_per_node: int = Field(default=8, ge=1)
    gpu: Gpu | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Watch(SentinelConfig):
    responses: int = 128
    """Of the run, if not given."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Sentinel(AlarmPolicyConfig):
    action: Literal["log", "checkpoint", "stop", "rollback"] = "log"
    watch: Watch | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Plan(Assumed):
    """Assumptions of `pv-rl plan`."""

    model: dict[str, Any] | None = None
    """Shape of the model, as its config.json names things."""


@dataclass(frozen=True, kw_only=True, config=OPEN)
class RunConfig:
    """A run, or a group of `# @package _global_`."""

    recipe: Recipe | None = None
    reward: Reward | None = None
    cluster: Cluster | None = None
    sentinel: Sentinel | None = None
    plan: Plan | None = None


def config_schema(key: str = "") -> dict[str, Any]:
    """The schema of a run's config, or of the part under a dotted key, `# @package KEY` in a group's file.

    Raises:
        ConfigError: pv-rl reads nothing under that key.
    """
    schema = json_schema(RunConfig)
    found = part_of(schema, key) if key else schema
    if found is None:
        raise ConfigError(f"no schema describes {key!r}. Expected a section such as sentinel, plan or reward")
    return found
