"""What the weights of a step do, for verl's metric stream."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pv_rl.losses import LossMode, diagnose

__all__ = ["VERDICT_KEYS", "reward_info", "step_metrics"]

PREFIX = "pv_rl/"
VERDICT_KEYS = ("verdict_true", "verdict_missing")
"""The keys of a reward's extra info that say its verdict, each 0 or 1, see `pv_rl.rewards.ProofVerdict`."""


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
    """
    verdicts = None
    if any(VERDICT_KEYS[0] in info for info in infos):
        verdicts = [_verdict(info) for info in infos]
    return {
        PREFIX + name: value for name, value in diagnose(mode, lengths, groups, advantages, verdicts).items()
    }


def reward_info(extra_fields: Any) -> Mapping[str, Any]:
    """The reward's part of the `extra_fields` that verl's agent loop keeps of a row; empty if there is none."""
    info = extra_fields.get("reward_extra_info") if isinstance(extra_fields, Mapping) else None
    return info if isinstance(info, Mapping) else {}


def _verdict(info: Mapping[str, Any]) -> bool | None:
    said_true, missing = (info.get(key) for key in VERDICT_KEYS)
    return None if said_true is None or missing else bool(said_true)
