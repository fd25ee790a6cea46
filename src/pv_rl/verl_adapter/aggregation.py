"""Patch of verl's `agg_loss`: adds our modes, which use the row weights of the micro-batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import ModuleType

import torch
from torch import Tensor

from pv_rl.errors import VerlError
from pv_rl.losses import BatchStats, LossMode, ResponseStats, resolve_mode, step_stats, weighted_sum
from pv_rl.losses.mode import find_mode
from pv_rl.plugins import STOCK_EQUIVALENT
from pv_rl.verl_adapter.install import replace_everywhere

__all__ = ["MicroBatch", "in_use", "patch_agg_loss"]


@dataclass
class MicroBatch:
    """What one micro-batch is aggregated with, and how often that was asked for."""

    mode: LossMode
    weights: Tensor
    """(B,) weight of each token of a row, scaled to the mini-batch."""
    lengths: Tensor
    """(B,) tokens of a row that count."""
    dp_size: int
    """Data-parallel ranks; FSDP averages gradients over them, so a rank's sum is multiplied by it."""
    totals: BatchStats | None = None
    """What the whole mini-batch holds, for a mode of scope `batch`."""
    alias: str | None = None
    """A mode of verl's own that means `mode` here, because a loss names it whatever the config says."""
    uses: int = 0
    masks: list[Tensor] = field(default_factory=list)
    """Those that losses were aggregated with, each (B, L), by which `check_order` recognises rows."""

    def check_order(self) -> None:
        """Refuse rows in another order. A loss may reject tokens of a row (bypass mode does) and cannot add any, so a
        row with more tokens than the micro-batch has there is another row. Not seen: rows of equal lengths that swap.

        Raises:
            VerlError: a row has more.
        """
        for mask in self.masks:
            if ((mask != 0).sum(dim=-1) > self.lengths.to(mask.device)).any():
                raise self.other_rows("rows in another order")

    def other_rows(self, given: str) -> VerlError:
        """The error where a loss function aggregates other rows than those of the micro-batch in their order."""
        return VerlError(
            f"loss_agg_mode={self.mode.spec}: the loss function passes {given} to agg_loss, expected the "
            f"{len(self.weights)} rows of the micro-batch in their order, because each row has its own weight. Keep "
            "every row in its place, and set the mask of a row to 0 to leave it out."
        )


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

    Raises:
        VerlError: verl's function does not divide by the totals and multiply by `dp_size`, as `weighted_sum` is.
    """
    original = module.agg_loss
    loss, mask = (
        torch.tensor([[1.0, 2], [4, 8]], device="cpu"),
        torch.tensor([[1.0, 1], [1, 0]], device="cpu"),
    )
    for stock in STOCK_EQUIVALENT.values():  # (1 + 2 + 4) / 14 * 2, and (1.5 + 4) / 11 * 2
        if abs((found := float(original(loss, mask, stock, 2, 14, 11))) - 1) > 1e-6:
            raise VerlError(f"agg_loss gives {found:g} for an example in mode {stock}, expected 1")

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
        micro_batch = _current.get()
        if micro_batch is not None and loss_agg_mode == micro_batch.alias:
            loss_agg_mode = micro_batch.mode.spec
        mode = find_mode(loss_agg_mode)
        if mode is None:
            return original(loss_mat, loss_mask, loss_agg_mode, *totals, loss_scale_factor)
        if micro_batch is not None:
            return _of_micro_batch(original, loss_mat, loss_mask, mode, micro_batch)
        if mode.scope == "prompt" or mode.signs:
            if loss_mat.requires_grad or global_batch_size is not None:
                raise VerlError(
                    f"loss_agg_mode={loss_agg_mode}: a loss is being aggregated for which no weights were computed, "
                    f"so this path of verl is not one that pv-rl serves. Use {'dapo' if mode.signs else mode.name}"
                    "@batch, which needs no groups, or one of verl's own modes."
                )
            # Only a number for the log, in the driver and with no totals: groups and signs are not known there.
            mode = resolve_mode("dapo@batch") if mode.signs else replace(mode, scope="batch")
        elif loss_mat.requires_grad and (batch_num_tokens is None or global_batch_size is None):
            raise VerlError(
                f"loss_agg_mode={loss_agg_mode}: a loss is being aggregated without batch_num_tokens and "
                "global_batch_size, so each micro-batch would be normalised by itself. Pass both to agg_loss, the "
                "totals of the mini-batch over all ranks, or use one of verl's own modes."
            )
        return _by_verls_totals(loss_mat, loss_mask, mode, *totals)

    replace_everywhere(module, "agg_loss", agg_loss)


def _of_micro_batch(
    original: Callable[..., Tensor],
    loss_mat: Tensor,
    loss_mask: Tensor,
    mode: LossMode,
    micro_batch: MicroBatch,
) -> Tensor:
    weights, totals, dp_size = micro_batch.weights, micro_batch.totals, micro_batch.dp_size
    if mode != micro_batch.mode:
        raise VerlError(
            f"loss_agg_mode={mode.spec}: the weights at hand are those of {micro_batch.mode.spec}. pv-rl does not "
            "serve this path of verl: please report it."
        )
    if loss_mat.shape[0] != len(weights):
        raise micro_batch.other_rows(f"{loss_mat.shape[0]} rows")
    if not any(mask is loss_mask for mask in micro_batch.masks):
        micro_batch.masks.append(loss_mask)
    micro_batch.uses += 1
    if totals is not None and mode.name in STOCK_EQUIVALENT:
        stock = STOCK_EQUIVALENT[mode.name]  # verl's function computes it, so it is equal to the last bit
        # verl multiplies by the mask, and NaN * 0 is NaN.
        loss_mat = torch.where(loss_mask != 0, loss_mat, 0.0)
        return original(loss_mat, loss_mask, stock, dp_size, totals.num_tokens, totals.num_responses)
    return weighted_sum(loss_mat, loss_mask, weights) * dp_size


def _by_verls_totals(
    loss_mat: Tensor,
    loss_mask: Tensor,
    mode: LossMode,
    dp_size: int,
    batch_num_tokens: int | None,
    global_batch_size: int | None,
) -> Tensor:
    """Outside verl's own workers: one group, its totals given by the caller or, where there are none, counted."""
    length = loss_mask.to(torch.float64).sum(dim=-1)
    if batch_num_tokens is None or global_batch_size is None:
        if dp_size > 1:
            raise VerlError(
                f"loss_agg_mode={mode.spec}: batch_num_tokens and global_batch_size are required on {dp_size} ranks"
            )
        stats = step_stats(length, [0] * len(length))
    else:
        everything = torch.ones_like(length)
        stats = (
            ResponseStats(length, everything * global_batch_size, everything * batch_num_tokens),
            BatchStats(num_prompts=1, num_responses=global_batch_size, num_tokens=batch_num_tokens),
        )
    return weighted_sum(loss_mat, loss_mask, mode.weights(*stats)) * dp_size
