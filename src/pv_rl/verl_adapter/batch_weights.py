"""Weights of scope `batch`: computed in the worker, where a mini-batch is in one place, rank by rank.

verl's own totals count padding rows in `global_batch_size`, and in `batch_num_tokens` what was masked after the
rollout (`loss_mask` and not `response_mask`). Ours count the rows and tokens that the loss counts.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from pv_rl.errors import VerlError
from pv_rl.losses import BatchStats, LossMode, step_stats
from pv_rl.losses.mode import find_mode
from pv_rl.verl_adapter.row_weights import field_name, mini_batch_rows
from pv_rl.verl_adapter.rows import advantage_sums

__all__ = ["batch_fields", "batch_totals", "patch_training_worker", "patch_workers"]

TOTALS = ("pv_rl_num_responses", "pv_rl_num_tokens")


def patch_workers(module: Any) -> None:
    """Wrap `train_batch`, and add `pv_rl_scale_learning_rate` to `ActorRolloutRefWorker` (:452), on all ranks.

    A hook calls it as `trainer.actor_rollout_wg.pv_rl_scale_learning_rate(factor)`, which gives a bool a rank: False
    where the schedule is not torch's. Symptom without it: a learning rate cannot be changed after the start. Can go
    when verl has such a call.
    """
    patch_training_worker(module)

    @module.register(dispatch_mode=module.Dispatch.ONE_TO_ALL)
    def pv_rl_scale_learning_rate(self, factor: float) -> bool:
        engine = self.actor.engine
        if not hasattr(engine.lr_scheduler, "base_lrs"):  # Megatron's schedule
            return False
        for group in engine.optimizer.param_groups:
            group["lr"] *= factor
            if "initial_lr" in group:
                group["initial_lr"] *= factor
        # The schedule multiplies these, and they are saved with the checkpoint.
        engine.lr_scheduler.base_lrs = [lr * factor for lr in engine.lr_scheduler.base_lrs]
        return True

    module.ActorRolloutRefWorker.pv_rl_scale_learning_rate = pv_rl_scale_learning_rate


def patch_training_worker(module: Any) -> None:
    """Wrap `TrainingWorker.train_batch` (verl/workers/engine_workers.py:343), which gets one mini-batch of a rank.

    It is above every engine. Symptom without it: `VerlError` at the first loss of a mode of scope `batch`. Can go
    when verl counts what its loss counts.
    """
    original = module.TrainingWorker.train_batch

    @functools.wraps(original)
    def train_batch(self, data):
        config = getattr(self.loss_fn, "keywords", {}).get("config")
        mode = find_mode(getattr(config, "loss_agg_mode", None))
        if mode is not None and mode.scope == "batch":
            lengths = [int(mask.sum()) for mask in data["response_mask"].unbind()]
            group = self.engine.get_data_parallel_group()
            by_rank, rank = _gather(lengths, group)
            signs = chain.from_iterable(_gather(_advantages(data, mode), group)[0]) if mode.signs else None
            fields, totals = batch_fields(
                mode, by_rank, rank, mini_batch_rows(data, mode), signs and list(signs)
            )
            data.update(fields)
            module.tu.assign_non_tensor(data, **totals)
        return original(self, data)

    module.TrainingWorker.train_batch = train_batch


def batch_fields(
    mode: LossMode,
    by_rank: Sequence[Sequence[int]],
    rank: int,
    rows: int,
    advantages: Sequence[float] | None = None,
) -> tuple[dict[str, Tensor], dict[str, int]]:
    """What to add to a rank's part of a mini-batch.

    Args:
        mode: of scope `batch`.
        by_rank: for each data-parallel rank, the response tokens that count of each of its rows.
        rank: whose part is wanted.
        rows: verl's `global_batch_size`, by which the field is divided later, as that of scope `prompt` is.
        advantages: of the rows of all ranks in their order, see `step_stats`.

    Returns:
        The field of the weights, (B, 1) float64, and what the mini-batch holds over all ranks, see `batch_totals`.
    """
    lengths = torch.tensor([length for part in by_rank for length in part])
    responses, totals = step_stats(lengths, [0] * len(lengths), advantages)
    weights = mode.weights(responses, totals).split([len(part) for part in by_rank])[rank]
    held = {TOTALS[0]: int(totals.num_responses), TOTALS[1]: int(totals.num_tokens)}
    return {field_name(mode): (weights * rows).unsqueeze(-1)}, held


def batch_totals(data: Any) -> BatchStats | None:
    """What the mini-batch of these rows holds over all ranks, or None if nobody counted."""
    if TOTALS[0] not in data.keys():  # noqa: SIM118 - `in` on a TensorDict is not a look-up
        return None
    # A mini-batch in which no row counts has a loss of 0, not 0 / 0.
    responses, tokens = (max(data[name], 1) for name in TOTALS)
    return BatchStats(num_prompts=1, num_responses=responses, num_tokens=tokens)


def _advantages(data: Any, mode: LossMode) -> list[float]:
    """(B,) sums over the tokens that count.

    Raises:
        VerlError: the rows came without advantages.
    """
    if "advantages" not in data.keys():  # noqa: SIM118 - `in` on a TensorDict is not a look-up
        raise VerlError(
            f"loss_agg_mode={mode.spec} uses the signs of the advantages, and the rows came to the worker without the "
            "field 'advantages'. Use a mode of lengths alone, such as dapo@batch."
        )
    return advantage_sums(data["advantages"].unbind(), data["response_mask"].unbind())


def _gather(rows: list[Any], group: Any) -> tuple[list[list[Any]], int]:
    if group is None:  # verl's engines say so where there is one data-parallel rank
        return [rows], 0
    by_rank: list[list[Any]] = [[]] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(by_rank, rows, group)
    return by_rank, torch.distributed.get_rank(group)
