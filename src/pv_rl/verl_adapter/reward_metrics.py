"""What the rewards of a step were and what the judge did, for verl's metric stream."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pv_rl.judge.shared import driver_services
from pv_rl.judge.tally import RowId, Span
from pv_rl.rewards.named import DROP_GROUP, VALID

__all__ = ["judge_numbers", "reward_numbers"]

logger = logging.getLogger("pv_rl")


def reward_numbers(infos: Sequence[Mapping[str, Any]], absent: Sequence[bool]) -> dict[str, float]:
    """Means over a step's rows.

    Args:
        infos: the reward's extra info of each row, padding left out.
        absent: (B,) which rows abstain.

    Returns:
        `pv_rl/reward/score` over the rows that have a reward; `pv_rl/reward/abstained`, and each number of the extra
        info (`verdict_missing`, `vetoed`, `rule_NAME` ...), over all rows.
    """
    scores = [info["score"] for info, gone in zip(infos, absent, strict=True) if not gone and "score" in info]
    numbers = {"abstained": sum(absent) / len(absent)} if absent else {}
    if scores:
        numbers["score"] = sum(scores) / len(scores)
    for name in infos[0] if infos else ():
        values = [info.get(name) for info in infos]
        if name not in ("score", VALID, DROP_GROUP) and all(isinstance(v, int | float) for v in values):
            numbers[name] = sum(values) / len(values)  # pyright: ignore[reportArgumentType]
    return {f"pv_rl/reward/{name}": value for name, value in numbers.items()}


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
            numbers[f"pv_rl/judge/{name}"] = numbers.get(f"pv_rl/judge/{name}", 0.0) + value
    return numbers


@functools.cache
def _say_once() -> None:
    logger.exception("the judge did not report, which is said once")
