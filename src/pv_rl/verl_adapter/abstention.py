"""Rows without a reward leave the step: the baseline of their group, the weights and the loss.

A reward says so by `reward_valid` (and `reward_drop_group`, for the whole group) in its extra info. Such a row gets a
response mask of zeros, so that nothing of it counts, and a uid of its own, so that no estimator compares it with
others. Where no row of a step counts there is no update: one would move the weights by momentum and decay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import compress
from types import ModuleType
from typing import Any

import numpy as np
import torch
from omegaconf import open_dict

from pv_judge.metrics import RowId
from pv_rl.rewards.named import DROP_GROUP, VALID
from pv_rl.verl_adapter.patching import replace_everywhere
from pv_rl.verl_adapter.reward_metrics import broken_reason, judge_numbers, reward_numbers
from pv_rl.verl_adapter.reward_workers import names_our_reward
from pv_rl.verl_adapter.step_metrics import reward_info

__all__ = ["abstaining", "patch_legacy_trainer", "patch_v1_trainer"]


ABSTAINED = "_abstained"


def abstaining(infos: Sequence[Mapping[str, Any]], groups: Sequence[Hashable]) -> list[bool]:
    """(B,) whether a row abstains: its reward does not say that it is one, or drops the group that it is in.

    Args:
        infos: the reward's extra info of each row.
        groups: B prompt ids.
    """
    dropped = {group for info, group in zip(infos, groups, strict=True) if info.get(DROP_GROUP, 0)}
    return [not info.get(VALID, 0) or group in dropped for info, group in zip(infos, groups, strict=True)]


def patch_v1_trainer(module: ModuleType) -> None:
    """Wrap `PPOTrainer._compute_advantage`, `_update_actor` and `_update_critic`
    (verl/trainer/ppo/v1/trainer_base.py:1743, :1827, :1804).

    Symptom without it: a row whose reward could not be had is trained on as wrong. Can go when verl has a notion of
    no reward.
    """
    trainer = module.PPOTrainer
    original = trainer._compute_advantage

    @functools.wraps(original)
    def _compute_advantage(self, batch, metrics):
        self._pv_rl_nothing_counts = False
        if not names_our_reward(self.config):
            return original(self, batch, metrics)
        fields = ["uid", "response_mask", "extra_fields"]
        data = module.tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
        groups, masks = data.pop("uid").tolist(), data["response_mask"].unbind()
        infos = [reward_info(row) for row in data.pop("extra_fields").tolist()]
        absent = abstaining(infos, groups)
        self._pv_rl_broken = broken_reason(infos)
        if any(absent):
            _take_out(module, batch, masks, absent)
        kept = zip(masks, absent, strict=True)
        self._pv_rl_nothing_counts = not any(bool(mask.any()) and not gone for mask, gone in kept)
        real = [not tag.get("is_padding", False) for tag in batch.tags]
        metrics.update(reward_numbers(list(compress(infos, real)), list(compress(absent, real))))
        window = getattr(self.replay_buffer, "_pv_rl_window", None)
        metrics.update(judge_numbers(self.global_steps + 1, list(map(_row_id, batch.keys)), window))
        with _without_correction(self.config) if self._pv_rl_nothing_counts else nullcontext():
            return original(self, batch, metrics)

    trainer._compute_advantage = _compute_advantage
    for name in ("_update_actor", "_update_critic"):
        setattr(trainer, name, _v1_update(getattr(trainer, name)))


@contextmanager
def _without_correction(config: Any) -> Iterator[None]:
    """verl's rollout correction refuses a step where no token counts (verl/trainer/ppo/rollout_corr_helper.py:837)."""
    before = config.algorithm.get("rollout_correction")
    with open_dict(config):
        config.algorithm.rollout_correction = None
    try:
        yield
    finally:
        config.algorithm.rollout_correction = before


def _take_out(module: Any, batch: Any, masks: Sequence[torch.Tensor], absent: Sequence[bool]) -> None:
    keys = list(compress(batch.keys, absent))
    zeros = [torch.zeros_like(mask) for mask in compress(masks, absent)]
    own = [f"{key.rpartition('_')[0]}{ABSTAINED}" for key in keys]  # one for all outputs of a session
    fields = {"response_mask": torch.nested.as_nested_tensor(zeros, layout=torch.jagged), "uid": own}
    module.tq.kv_batch_put(
        keys=keys, partition_id=batch.partition_id, fields=module.tu.get_tensordict(fields)
    )


def _row_id(key: str) -> RowId:
    """From a key of verl's, `{uid}_{session}_{index}` (verl/trainer/ppo/v1/agent_loop_tq.py:177)."""
    uid, session, _ = key.rsplit("_", 2)
    return uid, int(session)


def _v1_update(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def update(self, batch, metrics):
        if getattr(self, "_pv_rl_nothing_counts", False):
            metrics["pv_rl/update_skipped"] = 1.0
            return batch
        return original(self, batch, metrics)

    return update


def patch_legacy_trainer(module: ModuleType) -> None:
    """Wrap `compute_advantage`, `RayPPOTrainer._update_actor` and `_update_critic`
    (verl/trainer/ppo/ray_trainer.py:187, :1327, :1378).

    The same for `trainer.use_v1=False`, where a step is one DataProto that has the extra info in columns. Can go with
    verl's legacy trainer.
    """
    original = module.compute_advantage

    @functools.wraps(original)
    def compute_advantage(data, *arguments, **options):
        absent = _absent(data, _infos(data))
        if not any(absent):
            return original(data, *arguments, **options)
        uids = data.non_tensor_batch["uid"]
        own = [
            f"{uid}_{row}{ABSTAINED}" if gone else uid
            for row, (uid, gone) in enumerate(zip(uids, absent, strict=True))
        ]
        mask = data.batch["response_mask"].clone()
        mask[torch.tensor(absent)] = 0
        data.batch["response_mask"], data.non_tensor_batch["uid"] = mask, np.array(own, dtype=object)
        data = original(data, *arguments, **options)
        data.non_tensor_batch["uid"] = uids
        return data

    replace_everywhere(module, "compute_advantage", compute_advantage)
    trainer = module.RayPPOTrainer
    trainer._update_critic = _legacy_update(module, trainer._update_critic)
    trainer._update_actor = _legacy_update(module, trainer._update_actor, log=True)


def _legacy_update(module: Any, original: Callable[..., Any], log: bool = False) -> Callable[..., Any]:
    @functools.wraps(original)
    def update(self, batch):
        infos = _infos(batch)
        absent = _absent(batch, infos)
        skipped = any(absent) and not batch.batch["response_mask"].any()
        output = module.DataProto(meta_info={"metrics": {}}) if skipped else original(self, batch)
        if log and names_our_reward(self.config):
            self._pv_rl_broken = broken_reason(infos)
            metrics = output.meta_info["metrics"]
            metrics.update(reward_numbers(infos, absent))
            metrics.update(judge_numbers(self.global_steps + 1, [], None))
            metrics.update({"pv_rl/update_skipped": 1.0} if skipped else {})
        return output

    return update


def _infos(data: Any) -> list[dict[str, Any]]:
    """The reward's extra info of each row; none if the reward says nothing about abstaining."""
    columns = data.non_tensor_batch
    if VALID not in columns:
        return []
    keys = [key for key in data.meta_info.get("reward_extra_keys", (VALID, DROP_GROUP)) if key in columns]
    return [
        dict(zip(keys, row, strict=True))
        for row in zip(*(columns[key].tolist() for key in keys), strict=True)
    ]


def _absent(data: Any, infos: Sequence[Mapping[str, Any]]) -> list[bool]:
    return abstaining(infos, data.non_tensor_batch["uid"].tolist()) if infos else []
