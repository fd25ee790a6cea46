"""Write down what verl's trainer trains on, as an external module of verl (`VERL_USE_EXTERNAL_MODULES=recorder`).

Each call of `_update_actor` adds a line to `PV_RL_TEST_RECORD`: prompt ids, response tokens that count and advantages,
a row each, just before they go to the workers, and verl's keys of the rows where it has any. It looks at nothing of
pv-rl, so the formula can be held against it.
"""

from __future__ import annotations

import functools
import json
import os

from wrapt import register_post_import_hook


def write(uids, masks, advantages, keys=()) -> None:
    line = {
        "groups": [str(uid) for uid in uids],
        "lengths": [int(mask.sum()) for mask in masks],
        "advantages": [
            float((row * mask).sum() / mask.sum().clamp(min=1))
            for row, mask in zip(advantages, masks, strict=True)
        ],
        "keys": list(keys),
    }
    with open(os.environ["PV_RL_TEST_RECORD"], "a") as file:
        file.write(json.dumps(line) + "\n")


def record_v1(module) -> None:
    original = module.PPOTrainer._update_actor

    @functools.wraps(original)
    def _update_actor(self, batch, metrics):
        fields = ["uid", "response_mask", "advantages"]
        data = module.tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
        masks, advantages = data["response_mask"].unbind(), data["advantages"].unbind()
        write(data.pop("uid").tolist(), masks, advantages, batch.keys)
        return original(self, batch, metrics)

    module.PPOTrainer._update_actor = _update_actor


def record_legacy(module) -> None:
    original = module.RayPPOTrainer._update_actor

    @functools.wraps(original)
    def _update_actor(self, batch):
        fields = batch.batch
        write(batch.non_tensor_batch["uid"], fields["response_mask"].unbind(), fields["advantages"].unbind())
        return original(self, batch)

    module.RayPPOTrainer._update_actor = _update_actor


register_post_import_hook(record_v1, "verl.trainer.ppo.v1.trainer_base")
register_post_import_hook(record_legacy, "verl.trainer.ppo.ray_trainer")
