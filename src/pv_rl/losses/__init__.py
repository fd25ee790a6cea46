"""Loss-aggregation modes: functions from response lengths to token weights. Knows torch, not verl."""

from pv_rl.losses.aggregate import response_weights, weighted_sum
from pv_rl.losses.balanced import DEFAULT_ETA, balanced
from pv_rl.losses.dapo import dapo
from pv_rl.losses.diagnostics import diagnose, effective_number, length_quartiles
from pv_rl.losses.dr_grpo import dr_grpo
from pv_rl.losses.grpo import grpo
from pv_rl.losses.mode import LossMode, Scope, Weighting, resolve_mode
from pv_rl.losses.stats import BatchStats, ResponseStats, step_stats
from pv_rl.losses.vl_norm import vl_norm

__all__ = [
    "DEFAULT_ETA",
    "BatchStats",
    "LossMode",
    "ResponseStats",
    "Scope",
    "Weighting",
    "balanced",
    "dapo",
    "diagnose",
    "dr_grpo",
    "effective_number",
    "grpo",
    "length_quartiles",
    "resolve_mode",
    "response_weights",
    "step_stats",
    "vl_norm",
    "weighted_sum",
]
