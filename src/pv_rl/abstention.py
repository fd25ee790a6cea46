"""Rows without a reward leave the step: the baseline of their group, the weights and the loss.

A reward says so by `reward_valid` (and `reward_drop_group`, for the whole group) in its extra info. Such a row gets a
response mask of zeros, so that nothing of it counts, and a uid of its own, so that no estimator compares it with
others. Where no row of a step counts there is no update: one would move the weights by momentum and decay.

Symptom without it: a row whose reward could not be had is trained on as wrong. Can go when verl has a notion of no
reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pv_rl import metric_names
from pv_rl.rewards.named import ERROR
from pv_rl.step_state import StepState

__all__ = ["broken_reason", "halt_if_broken", "skip_empty_update", "take_out"]


def take_out(state: StepState) -> None:
    """Hook: keep rows that abstain out of the baselines, the weights and the losses."""
    if state.rows is not None and any(state.rows.absent):
        state.rows.take_out()


def skip_empty_update(state: StepState) -> None:
    """Hook: make no update of nothing."""
    if state.rows is not None and state.rows.nothing_counts:
        state.skip_update, state.metrics[metric_names.UPDATE_SKIPPED] = True, 1.0


def halt_if_broken(state: StepState) -> None:
    """Hook: end a run whose reward fails."""
    if state.rows is not None and (reason := broken_reason(state.rows.infos)):
        state.halt(reason)


def broken_reason(infos: Sequence[Mapping[str, Any]]) -> str | None:
    """Why the run should stop: the reward failed for most rows of a step, which no run gets better by. Or None."""
    failed = sum(bool(info.get(ERROR, 0)) for info in infos)
    if 2 * failed <= len(infos):
        return None
    return f"the reward failed for {failed} of the {len(infos)} rows of a step; the log says how"
