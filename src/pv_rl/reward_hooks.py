"""Trainer hooks of the rewards: rows that abstain leave the step, and metrics report the rewards.

A row abstains where its reward says so by `reward_valid` (and `reward_drop_group`, for the whole group) in its extra
info. It leaves the baseline of its group, the weights and the loss: it gets a response mask of zeros, so that nothing
of it counts, and a uid of its own, so that no estimator compares it with others. Where no row of a step counts there
is no update: one would move the weights by momentum and decay.

Symptom without it: a row whose reward could not be had is trained on as wrong. Can go when verl has a notion of no
reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pv_rl import metric_names
from pv_rl.rewards.named import DROP_GROUP, ERROR, VALID
from pv_rl.step_state import StepState

__all__ = [
    "add_metrics",
    "broken_reason",
    "halt_if_broken",
    "reward_numbers",
    "skip_empty_update",
    "take_out",
]


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
    return f"the reward failed for {failed} of {len(infos)} rows; correct what the log says of 'failed for a row'"


def add_metrics(state: StepState) -> None:
    """Hook: log `reward_numbers` of the rows that are not padding."""
    if (rows := state.rows) is not None and rows.infos:
        real = [row for row, padding in enumerate(rows.padding) if not padding]
        infos, absent = rows.infos, rows.absent
        state.metrics.update(reward_numbers([infos[row] for row in real], [absent[row] for row in real]))


def reward_numbers(infos: Sequence[Mapping[str, Any]], absent: Sequence[bool]) -> dict[str, float]:
    """Means over a step's rows.

    Args:
        infos: the reward's extra info of each row, padding left out.
        absent: (B,) which rows abstain.

    Returns:
        `pv_rl/reward/score` over the rows that have a reward; `pv_rl/reward/abstained`, and each number of the extra
        info (`verdict_missing`, `vetoed`, `rule_NAME` ...), over all rows. `acc` is split by the label as well where
        the reward gives it: `acc_label_true` over right proofs, `acc_label_false` over wrong ones, without the rows
        for which the reward failed: their label was not read.
    """
    scores = [info["score"] for info, gone in zip(infos, absent, strict=True) if not gone and "score" in info]
    numbers = {"abstained": sum(absent) / len(absent)} if absent else {}
    if scores:
        numbers["score"] = sum(scores) / len(scores)
    for name in dict.fromkeys(name for info in infos for name in info):
        # A row that failed before any was scored in its process does not know the names.
        found = [info.get(name, 0.0 if info.get(ERROR) else None) for info in infos]
        values = [value for value in found if isinstance(value, int | float)]
        if name not in ("score", VALID, DROP_GROUP) and len(values) == len(infos):
            numbers[name] = sum(values) / len(values)
    if "acc" in numbers and "label_true" in numbers:
        for name, label in (("label_true", 1.0), ("label_false", 0.0)):
            right = [info["acc"] for info in infos if not info.get(ERROR) and info["label_true"] == label]
            if right:
                numbers[f"acc_{name}"] = sum(right) / len(right)
    return {metric_names.REWARD + name.removeprefix("reward_"): value for name, value in numbers.items()}
