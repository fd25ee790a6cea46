"""Reward and judge metrics of a step, for verl's metric stream."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pv_judge.metrics import RowId, Span
from pv_judge.ray_service import driver_services
from pv_rl.rewards.named import DROP_GROUP, ERROR, VALID

__all__ = ["broken_reason", "judge_numbers", "reward_numbers"]

logger = logging.getLogger("pv_rl")


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
    return {f"pv_rl/reward/{name.removeprefix('reward_')}": value for name, value in numbers.items()}


def broken_reason(infos: Sequence[Mapping[str, Any]]) -> str | None:
    """Why the run should stop: the reward failed for most rows of a step, which no run gets better by. Or None."""
    failed = sum(bool(info.get(ERROR, 0)) for info in infos)
    if 2 * failed <= len(infos):
        return None
    return f"the reward failed for {failed} of the {len(infos)} rows of a step; the log says how"


def judge_numbers(step: int, rows: Sequence[RowId], window: Span | None) -> dict[str, float]:
    """What the services of this run report, see `Tally.report`; from now on they count for `step`.

    A service that does not answer is no reason to end a run: `pv_rl/judge/unreachable` is 1 then.
    """
    numbers: dict[str, float] = {}
    for service in driver_services():
        try:
            report = service.report(step, rows, window)
        except Exception:  # noqa: BLE001 - Ray's errors and time-outs; the policy decides on rows, not this
            _say_once()
            report = {"unreachable": 1.0}
        for name, value in report.items():
            key = f"pv_rl/judge/{name}"
            # Of several judges: what was counted is added up, and of the rest the largest is told.
            numbers[key] = (
                numbers.get(key, 0.0) + value
                if name.endswith("/sum")
                else max(value, numbers.get(key, value))
            )
    return numbers


@functools.cache
def _say_once() -> None:
    logger.exception("the judge did not report, which is said once")
