"""Reward and weight metrics of a step, for verl's metric stream."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pv_rl import metric_names
from pv_rl.losses import LossMode, diagnose
from pv_rl.losses.mass import mass, mass_remark
from pv_rl.rewards.named import DROP_GROUP, ERROR, VALID
from pv_rl.step_state import StepState

__all__ = [
    "VERDICT_KEYS",
    "add_reward_metrics",
    "add_weight_metrics",
    "gives_verdicts",
    "reward_numbers",
    "weight_numbers",
]

VERDICT_KEYS = ("verdict_true", "verdict_missing")
"""The keys of a reward's extra info that say its verdict, each 0 or 1, see `pv_rl.rewards.ProofVerdict`."""

_remarked: set[str] = set()
"""Modes of which the log has said that their mass is far from 1."""


def add_reward_metrics(state: StepState) -> None:
    """Hook: log `reward_numbers` of the rows that are not padding."""
    if (rows := state.rows) is not None and rows.infos:
        real = [row for row, padding in enumerate(rows.padding) if not padding]
        infos, absent = rows.infos, rows.absent
        state.metrics.update(reward_numbers([infos[row] for row in real], [absent[row] for row in real]))


def add_weight_metrics(state: StepState) -> None:
    """Hook: log `weight_numbers` of the actor's mode."""
    if (mode := state.mode) is not None and (rows := state.rows) is not None:
        numbers = weight_numbers(mode, rows.lengths, rows.uids, rows.advantages, rows.verdict_infos)
        state.metrics.update(numbers)


def reward_numbers(infos: Sequence[Mapping[str, Any]], absent: Sequence[bool]) -> dict[str, float]:
    """Means over a step's rows.

    Args:
        infos: the reward's extra info of each row, padding left out.
        absent: (B,) which rows abstain.

    Returns:
        `pv_rl/reward/score` over the rows that have a reward; `pv_rl/reward/abstained`, and each number of the extra
        info (`verdict_missing`, `vetoed`, `rule_NAME` ...), over all rows. `acc` is split by the label as well where
        the reward gives it: `acc/label_true` over right proofs, `acc/label_false` over wrong ones, without the rows
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
                numbers[f"acc/{name}"] = sum(right) / len(right)
    return {metric_names.REWARD + name.removeprefix("reward_"): value for name, value in numbers.items()}


def weight_numbers(
    mode: LossMode,
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    advantages: Sequence[float],
    infos: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """`pv_rl.losses.diagnose` under the prefix `pv_rl/`. A warning says once that a mode's mass is far from 1.

    Args:
        mode: the actor's.
        lengths: (B,) response tokens that count.
        groups: B prompt ids.
        advantages: (B,) the sum over each response's tokens, of which the sign counts.
        infos: the reward's extra info of each row; empty if the trainer has none. Where no row has `VERDICT_KEYS`
            the reward gives no verdict, and nothing is split by it.
    """
    verdicts = [_verdict(info) for info in infos] if any(map(gives_verdicts, infos)) else None
    numbers = diagnose(mode, lengths, groups, advantages, verdicts)
    if numbers and mode.spec not in _remarked:
        remark = mass_remark(mode, [mass(mode, lengths, groups)], "in this step")
        if remark:
            _remarked.add(mode.spec)
            logging.getLogger("pv_rl").warning("%s actor/pv_rl/update_mass shows it for each update.", remark)
    return {metric_names.PREFIX + name: value for name, value in numbers.items()}


def gives_verdicts(info: Mapping[str, Any]) -> bool:
    """Whether a row's reward says what the verdict was."""
    return VERDICT_KEYS[0] in info


def _verdict(info: Mapping[str, Any]) -> bool | None:
    """True or False if the reward says so with a number or a bool; None if it says that there is none, or nothing."""
    said_true, missing = (_flag(info.get(key)) for key in VERDICT_KEYS)
    return None if missing else said_true


def _flag(value: Any) -> bool | None:
    try:
        return {0.0: False, 1.0: True}.get(float(value))
    except (TypeError, ValueError):  # a text, a list, nothing
        return None
