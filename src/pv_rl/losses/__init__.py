"""Loss-aggregation modes: functions from response lengths to token weights. They need torch, not verl."""

from pv_rl.losses.aggregate import response_weights, weighted_sum
from pv_rl.losses.mode import LossMode, Scope, Weighting, resolve_mode
from pv_rl.losses.scaling import check_policy_loss, scale_advantages
from pv_rl.losses.stats import BatchStats, ResponseStats, step_stats
from pv_rl.losses.weightings import DEFAULT_ETA, ba, balanced, dapo, dr_grpo, grpo, vl_norm

__all__ = [
    "DEFAULT_ETA",
    "BatchStats",
    "LossMode",
    "ResponseStats",
    "Scope",
    "Weighting",
    "ba",
    "balanced",
    "check_policy_loss",
    "dapo",
    "dr_grpo",
    "grpo",
    "resolve_mode",
    "response_weights",
    "scale_advantages",
    "step_stats",
    "vl_norm",
    "weighted_sum",
]
