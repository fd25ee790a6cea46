"""verl's `agg_loss` with our modes, and the row weights that the loss functions hand it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from pv_rl.errors import VerlError
from pv_rl.losses import BatchStats, LossMode, ResponseStats, weighted_sum
from pv_rl.verl_adapter.modes import STOCK_EQUIVALENT, find_mode

__all__ = ["RowWeights", "patch_agg_loss", "row_weights_in_use"]


@dataclass
class RowWeights:
    """The weights of the rows of one micro-batch, and how often a loss was aggregated with them."""

    mode: LossMode
    weights: Tensor
    """(B,) weight of each token of a row, such that a mini-batch's rows on all ranks make a mean."""
    dp_size: int
    """Data-parallel ranks; FSDP averages gradients over them, so a rank's sum is multiplied by it."""
    uses: int = 0


_in_use: ContextVar[RowWeights | None] = ContextVar("pv_rl_row_weights", default=None)


@contextmanager
def row_weights_in_use(rows: RowWeights) -> Iterator[RowWeights]:
    """While this lasts, losses aggregated in this thread are weighted by `rows`."""
    token = _in_use.set(rows)
    try:
        yield rows
    finally:
        _in_use.reset(token)


def patch_agg_loss(module: ModuleType) -> None:
    """Replace `agg_loss` (verl/trainer/ppo/core_algos.py:1140), also where it was imported by name before us.

    Symptom without it: "Invalid loss_agg_mode: balanced" at the first loss. Can go when verl has a registry of
    aggregations. A mode of verl's own goes straight to verl's function.
    """
    original = module.agg_loss

    @functools.wraps(original)
    def agg_loss(
        loss_mat: Tensor,
        loss_mask: Tensor,
        loss_agg_mode: str,
        dp_size: int = 1,
        batch_num_tokens: int | None = None,
        global_batch_size: int | None = None,
        loss_scale_factor: int | None = None,
    ) -> Tensor:
        totals = (dp_size, batch_num_tokens, global_batch_size)
        mode = find_mode(loss_agg_mode)
        if mode is None:
            return original(loss_mat, loss_mask, loss_agg_mode, *totals, loss_scale_factor)
        if mode.scope == "prompt":
            rows = _in_use.get()
            if rows is not None:
                return _by_row_weights(loss_mat, loss_mask, mode, rows)
            if loss_mat.requires_grad or global_batch_size is not None:
                raise VerlError(
                    f"loss_agg_mode={loss_agg_mode}: a loss is being aggregated for which no weights were "
                    f"computed, so this path of verl is not one that pv-rl serves. Use {mode.name}@batch, which "
                    "needs no groups, or one of verl's own modes."
                )
            # Only a number for the log, in the driver and with no totals: the groups are not known there.
        stock = STOCK_EQUIVALENT.get(mode.name)
        if stock is not None:
            return original(loss_mat, loss_mask, stock, *totals)
        return _as_one_group(loss_mat, loss_mask, mode, *totals)

    for loaded in list(sys.modules.values()):
        if getattr(loaded, "__dict__", {}).get("agg_loss") is original:
            loaded.agg_loss = agg_loss  # pyright: ignore[reportAttributeAccessIssue]


def _by_row_weights(loss_mat: Tensor, loss_mask: Tensor, mode: LossMode, rows: RowWeights) -> Tensor:
    if mode != rows.mode or loss_mat.shape[0] != rows.weights.shape[0]:
        raise VerlError(
            f"loss_agg_mode={mode.spec}: {loss_mat.shape[0]} rows are being aggregated with the weights of "
            f"{rows.weights.shape[0]} rows of {rows.mode.spec}. Give actor and critic their own runs, or report it."
        )
    rows.uses += 1
    return weighted_sum(loss_mat, loss_mask, rows.weights) * rows.dp_size


def _as_one_group(
    loss_mat: Tensor,
    loss_mask: Tensor,
    mode: LossMode,
    dp_size: int,
    batch_num_tokens: int | None,
    global_batch_size: int | None,
) -> Tensor:
    """verl's convention: the mini-batch is one group, its totals given by verl or, where there are none, counted."""
    if dp_size > 1 and (batch_num_tokens is None or global_batch_size is None):
        raise VerlError(
            f"loss_agg_mode={mode.spec}: batch_num_tokens and global_batch_size are required on {dp_size} ranks"
        )
    length = loss_mask.to(torch.float32).sum(dim=-1)
    rows = int((length > 0).sum()) if global_batch_size is None else global_batch_size
    tokens = length.sum() if batch_num_tokens is None else batch_num_tokens
    everything = torch.ones_like(length)
    weights = mode.weights(
        ResponseStats(length, everything * rows, everything * tokens),
        BatchStats(num_prompts=1, num_responses=rows, num_tokens=tokens),
    )
    return weighted_sum(loss_mat, loss_mask, weights) * dp_size
