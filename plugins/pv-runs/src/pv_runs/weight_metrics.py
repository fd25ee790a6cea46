"""Weight metrics of a step, and warnings about the size of an update, as trainer hooks."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pv_rl.losses import LossMode
from pv_rl.losses.mode import find_mode
from pv_rl.recipes.choices import MODE, RESPONSES, value
from pv_rl.step_state import VERDICT_KEYS, gives_verdicts
from pv_runs import metric_names
from pv_runs.mass import expected_remark, mass, mass_remark
from pv_runs.weight_shares import diagnose

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from pv_rl.step_state import StepState

__all__ = ["add_metrics", "remarks", "warn", "weight_numbers"]

logger = logging.getLogger("pv_rl")

_remarked: set[str] = set()
"""Modes for which the log has a warning that their mass is far from 1."""


def warn(state: StepState) -> None:
    """Hook: log the `remarks` on a config."""
    for remark in remarks(state.config):
        logger.warning("%s", remark)


def remarks(config: DictConfig) -> list[str]:
    """Warnings before the run starts: the size of an update is far from that of verl's modes.

    Raises:
        LossModeError: the mode cannot be read.
    """
    mode, longest = find_mode(value(config, MODE)), value(config, "data.max_response_length")
    prompts, n = value(config, "data.train_batch_size"), value(config, RESPONSES)
    if mode is None or not (isinstance(prompts, int) and isinstance(n, int) and isinstance(longest, int)):
        return []
    short = max(1, longest // 10)  # how long responses are is known when there are some
    where = f"at responses of {short:,} to {longest:,} tokens"
    remark = expected_remark(mode, prompts, n, (short, longest), where)
    return [remark] if remark else []


def add_metrics(state: StepState) -> None:
    """Hook: log `weight_numbers` of the actor's mode."""
    if (mode := state.mode) is not None and (rows := state.rows) is not None:
        numbers = weight_numbers(mode, rows.lengths, rows.uids, rows.advantages, rows.verdict_infos)
        state.metrics.update(numbers)


def weight_numbers(
    mode: LossMode,
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    advantages: Sequence[float],
    infos: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """`pv_runs.weight_shares.diagnose` under the prefix `pv_rl/`. A warning says once that a mode's mass is far from 1.

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
        remark = mass_remark(mode, [mass(mode, lengths, groups, advantages)], "in this step")
        if remark:
            _remarked.add(mode.spec)
            logger.warning("%s actor/pv_rl/update_mass shows it for each update.", remark)
    return {metric_names.PREFIX + name: value for name, value in numbers.items()}


def _verdict(info: Mapping[str, Any]) -> bool | None:
    """True or False as the reward gives it, a number or a bool; None if there is no verdict or no such value."""
    said_true, missing = (_flag(info.get(key)) for key in VERDICT_KEYS)
    return None if missing else said_true


def _flag(value: Any) -> bool | None:
    try:
        return {0.0: False, 1.0: True}.get(float(value))
    except (TypeError, ValueError):  # a text, a list, nothing
        return None
