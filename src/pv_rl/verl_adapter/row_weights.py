"""Weights of scope `prompt`: computed in the driver, where all groups are together, and sent with the rows.

A field `pv_rl_row_weight/SPEC` holds, for each row, `w_i * rows` with `rows` the number of rows of the step,
padding included. A worker divides by the rows of a mini-batch (verl's `global_batch_size`), so a step of M
mini-batches has mass M, 1 a mini-batch on average: an update is as large as with verl's own modes. How rows are
dealt to micro-batches and ranks makes no difference, and to mini-batches only to which update a row is in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from torch import Tensor

from pv_rl.errors import VerlError
from pv_rl.losses import LossMode, response_weights
from pv_rl.step_state import StepState
from pv_rl.trainer_hooks import our_modes

__all__ = ["add_fields", "field_name", "mini_batch_rows", "row_fields"]


def add_fields(state: StepState) -> None:
    """Hook: send the weights of the modes of scope `prompt` with the rows.

    After the advantages the whole step is in one place, rows are in their final order, padding rows are in, and
    rollout correction has cut the response masks (but in bypass mode, where verl cuts them in the worker).
    """
    modes = {mode for mode in our_modes(state.config) if mode.scope == "prompt"}
    if modes and state.rows is not None:
        advantages = state.rows.advantages if any(mode.signs for mode in modes) else None
        state.rows.add_fields(row_fields(modes, state.rows.lengths, state.rows.uids, advantages))


def field_name(mode: LossMode) -> str:
    """The batch field that carries the weights of `mode`."""
    return f"pv_rl_row_weight/{mode.spec}"


def mini_batch_rows(data: Any, mode: LossMode) -> int:
    """verl's `global_batch_size`, which scales the weights: rows of a mini-batch over all ranks, padding included.

    Raises:
        VerlError: verl gave none.
    """
    rows = data["global_batch_size"]
    if rows is None:
        raise VerlError(f"loss_agg_mode={mode.spec}: verl gave no global_batch_size to scale the weights")
    return rows


def row_fields(
    modes: Iterable[LossMode],
    lengths: Sequence[int],
    groups: Sequence[Hashable],
    advantages: Sequence[float] | None = None,
) -> dict[str, Tensor]:
    """The fields to add to a step's rows.

    Args:
        modes: modes of scope `prompt`.
        lengths: (B,) response tokens that count, of every row of the step; 0 for padding.
        groups: B prompt ids, verl's `uid`.
        advantages: (B,) sums over the tokens that count, for modes that use their signs.

    Returns:
        Field name to (B, 1) float64, one for each mode.
    """
    return {
        field_name(mode): (response_weights(mode, lengths, groups, advantages) * len(lengths)).unsqueeze(-1)
        for mode in modes
    }
