"""Weight metrics of a step, for verl's metric stream."""

from __future__ import annotations

import functools
import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pv_rl.losses import LossMode, diagnose
from pv_rl.losses.mass import mass, mass_remark

__all__ = ["VERDICT_KEYS", "gives_verdicts", "reward_info", "step_metrics"]

logger = logging.getLogger("pv_rl")

PREFIX = "pv_rl/"
VERDICT_KEYS = ("verdict_true", "verdict_missing")
"""The keys of a reward's extra info that say its verdict, each 0 or 1, see `pv_rl.rewards.ProofVerdict`."""

_remarked: set[str] = set()
"""Modes of which the log has said that their mass is far from 1."""


def step_metrics(
    mode: LossMode,
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    advantages: Sequence[float],
    infos: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """`pv_rl.losses.diagnose` under the prefix `pv_rl/`.

    Args:
        mode: the actor's.
        lengths: (B,) response tokens that count.
        groups: B prompt ids.
        advantages: (B,) the sum over each response's tokens, of which the sign counts.
        infos: the reward's extra info of each row; empty if the trainer has none. Where no row has `VERDICT_KEYS`
            the reward gives no verdict, and nothing is split by it.

    Returns:
        The numbers; `pv_rl/metrics_failed` alone, 1, if they could not be computed, which the log says once.
    """
    verdicts = [_verdict(info) for info in infos] if any(map(gives_verdicts, infos)) else None
    try:
        numbers = diagnose(mode, lengths, groups, advantages, verdicts)
        if numbers and mode.spec not in _remarked:
            remark = mass_remark(mode, [mass(mode, lengths, groups)], "in this step")
            if remark:
                _remarked.add(mode.spec)
                logger.warning("%s actor/pv_rl/update_mass shows it for each update.", remark)
    except Exception:  # noqa: BLE001 - for the log alone; weights are checked where they are made
        _say_once()
        numbers = {"metrics_failed": 1.0}
    return {PREFIX + name: value for name, value in numbers.items()}


@functools.cache
def _say_once() -> None:
    logger.exception("pv-rl could not compute the metrics of a step, and says so once")


def reward_info(extra_fields: Any) -> Mapping[str, Any]:
    """The reward's part of the `extra_fields` that verl's agent loop keeps of a row; empty if there is none."""
    info = extra_fields.get("reward_extra_info") if isinstance(extra_fields, Mapping) else None
    return info if isinstance(info, Mapping) else {}


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
