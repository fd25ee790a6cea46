"""verl's `agg_loss` with our modes, and the row weights that the loss functions hand it."""

from __future__ import annotations

import functools
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
from pv_rl.verl_adapter.patching import replace_everywhere

__all__ = ["MicroBatch", "in_use", "patch_agg_loss"]


@dataclass
class MicroBatch:
    """What one micro-batch is aggregated with, and how often that was asked for."""

    mode: LossMode
    weights: Tensor | None
    """(B,) weight of each token of a row, scaled to the mini-batch; None for scope `batch`, which needs none."""
    dp_size: int
    """Data-parallel ranks; FSDP averages gradients over them, so a rank's sum is multiplied by it."""
    uses: int = 0


_current: ContextVar[MicroBatch | None] = ContextVar("pv_rl_micro_batch", default=None)


@contextmanager
def in_use(micro_batch: MicroBatch) -> Iterator[MicroBatch]:
    """While this lasts, losses aggregated in this thread are those of `micro_batch`."""
    token = _current.set(micro_batch)
    try:
        yield micro_batch
    finally:
        _current.reset(token)


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
        micro_batch = _current.get()
        if micro_batch is not None and micro_batch.mode == mode:
            micro_batch.uses += 1
        if mode.scope == "prompt":
            if micro_batch is not None:
                return _by_row_weights(loss_mat, loss_mask, mode, micro_batch)
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

    replace_everywhere(module, "agg_loss", agg_loss)


def _by_row_weights(loss_mat: Tensor, loss_mask: Tensor, mode: LossMode, micro_batch: MicroBatch) -> Tensor:
    weights = micro_batch.weights
    if mode != micro_batch.mode or weights is None or loss_mat.shape[0] != weights.shape[0]:
        held = "no weights" if weights is None else f"the weights of {weights.shape[0]} rows"
        raise VerlError(
            f"loss_agg_mode={mode.spec}: {loss_mat.shape[0]} rows are being aggregated where {held} of "
            f"{micro_batch.mode.spec} are at hand. This path of verl is not one that pv-rl serves: please report it."
        )
    return weighted_sum(loss_mat, loss_mask, weights) * micro_batch.dp_size


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
