"""Weights of scope `prompt`: computed in the driver, where all groups are together, and sent with the rows.

A field `pv_rl_row_weight/SPEC` holds, for each row, `w_i * rows` with `rows` the number of rows of the step,
padding included. A worker divides by the rows of a mini-batch (verl's `global_batch_size`), so a step of M
mini-batches has mass M, 1 a mini-batch on average: an update is as large as with verl's own modes. How rows are
dealt to micro-batches and ranks makes no difference, and to mini-batches only to which update a row is in.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from tensordict import TensorDict
from torch import Tensor

from pv_rl.errors import VerlError
from pv_rl.losses import LossMode, response_weights
from pv_rl.losses.mode import find_mode
from pv_rl.verl_adapter.step_metrics import VERDICT_KEYS, gives_verdicts, reward_info, step_metrics

__all__ = [
    "actor_mode",
    "field_name",
    "mini_batch_rows",
    "patch_legacy_trainer",
    "patch_v1_trainer",
    "prompt_modes",
    "row_fields",
]


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
        raise VerlError(
            f"loss_agg_mode={mode.spec}: verl gave no global_batch_size, which scales the weights"
        )
    return rows


def actor_mode(config: Any) -> LossMode | None:
    """The mode that a verl config names for the actor, if it is one of ours."""
    return find_mode(config.actor_rollout_ref.actor.get("loss_agg_mode"))


def prompt_modes(config: Any) -> set[LossMode]:
    """The modes of scope `prompt` that a verl config names, for the actor or for the critic."""
    parts = (config.actor_rollout_ref.actor, config.get("critic") or {})
    modes = {find_mode(part.get("loss_agg_mode")) for part in parts}
    return {mode for mode in modes if mode is not None and mode.scope == "prompt"}


def row_fields(
    modes: Iterable[LossMode], lengths: Sequence[int], groups: Sequence[Hashable]
) -> dict[str, Tensor]:
    """The fields to add to a step's rows.

    Args:
        modes: modes of scope `prompt`.
        lengths: (B,) response tokens that count, of every row of the step; 0 for padding.
        groups: B prompt ids, verl's `uid`.

    Returns:
        Field name to (B, 1) float64, one for each mode.
    """
    return {
        field_name(mode): (response_weights(mode, lengths, groups) * len(lengths)).unsqueeze(-1)
        for mode in modes
    }


def patch_v1_trainer(module: ModuleType) -> None:
    """Add the fields after `PPOTrainer._compute_advantage` (verl/trainer/ppo/v1/trainer_base.py:1743).

    There the whole step is in one place, rows are in their final order, padding rows are in, and rollout
    correction has cut the response masks (but in bypass mode, where verl cuts them in the worker). Symptom
    without it: no weights at the worker, and `VerlError` there. Can go when verl has a hook between advantage
    and update.
    """
    original = module.PPOTrainer._compute_advantage

    @functools.wraps(original)
    def _compute_advantage(self, batch, metrics):
        batch = original(self, batch, metrics)
        mode, modes = actor_mode(self.config), prompt_modes(self.config)
        if mode is None and not modes:
            return batch

        def get(*names: str, keys: Sequence[str] = batch.keys) -> Any:
            return module.tq.kv_batch_get(
                keys=keys, partition_id=batch.partition_id, select_fields=list(names)
            )

        data = get("uid", "response_mask", "advantages") if mode else get("uid", "response_mask")
        masks, uids = data["response_mask"].unbind(), data.pop("uid").tolist()
        lengths = [int(mask.sum()) for mask in masks]
        if mode is not None:
            advantages = [
                float((a * m).sum()) for a, m in zip(data["advantages"].unbind(), masks, strict=True)
            ]
            metrics.update(step_metrics(mode, lengths, uids, advantages, _reward_infos(batch, get)))
        if not modes:
            return batch
        fields = row_fields(modes, lengths, uids)
        # The metadata that the put returns lists the new fields; the worker fetches what is listed.
        return module.tq.kv_batch_put(
            keys=batch.keys,
            partition_id=batch.partition_id,
            fields=TensorDict(fields, batch_size=len(lengths)),
        )

    module.PPOTrainer._compute_advantage = _compute_advantage


def _reward_infos(batch: Any, get: Callable[..., Any]) -> list[Mapping[str, Any]]:
    """The reward's extra info of each row, if it gives verdicts; an agent loop may keep much more in that field."""
    if "extra_fields" not in (batch.fields or ()):
        return []

    def of(keys: Sequence[str]) -> list[Mapping[str, Any]]:
        rows = get("extra_fields", keys=keys).pop("extra_fields").tolist()
        return [reward_info(row) for row in (rows if isinstance(rows, list) else [rows])]

    return of(batch.keys) if any(map(gives_verdicts, of(batch.keys[:1]))) else []


def patch_legacy_trainer(module: ModuleType) -> None:
    """Add the fields before `_update_critic` and `_update_actor` (verl/trainer/ppo/ray_trainer.py:1378, :1327).

    The same for `trainer.use_v1=False`, where a step is one DataProto and the critic comes first. Can go with
    verl's legacy trainer.
    """
    trainer = module.RayPPOTrainer
    trainer._update_critic = _with_fields(trainer._update_critic)
    trainer._update_actor = _with_metrics(_with_fields(trainer._update_actor))


def _with_fields(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def update(self, batch):
        if modes := prompt_modes(self.config):
            lengths = batch.batch["response_mask"].sum(dim=-1).tolist()
            for name, field in row_fields(modes, lengths, batch.non_tensor_batch["uid"].tolist()).items():
                batch.batch[name] = field
        return original(self, batch)

    return update


def _with_metrics(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def update(self, batch):
        output = original(self, batch)
        if (mode := actor_mode(self.config)) is not None:
            mask, columns = batch.batch["response_mask"], batch.non_tensor_batch
            keys = [key for key in VERDICT_KEYS if key in columns]
            metrics = step_metrics(
                mode,
                lengths=mask.sum(dim=-1).tolist(),
                groups=columns["uid"].tolist(),
                advantages=(batch.batch["advantages"] * mask).sum(dim=-1).tolist(),
                infos=[
                    dict(zip(keys, row, strict=True)) for row in zip(*map(columns.get, keys), strict=True)
                ],
            )
            output.meta_info["metrics"].update(metrics)
        return output

    return update
