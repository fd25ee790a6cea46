"""Write down what verl's trainer trains on, as an external module of verl (`VERL_USE_EXTERNAL_MODULES=recorder`).

Each call of `_update_actor` adds a line to `PV_RL_TEST_RECORD`: prompt ids and response tokens that count, a row
each, just before they go to the workers. It looks at nothing of pv-rl, so the formula can be held against it.
"""

from __future__ import annotations

import functools
import json
import os

from wrapt import register_post_import_hook


def write(uids, masks) -> None:
    line = {"groups": [str(uid) for uid in uids], "lengths": [int(mask.sum()) for mask in masks]}
    with open(os.environ["PV_RL_TEST_RECORD"], "a") as file:
        file.write(json.dumps(line) + "\n")


def record_v1(module) -> None:
    original = module.PPOTrainer._update_actor

    @functools.wraps(original)
    def _update_actor(self, batch, metrics):
        fields = ["uid", "response_mask"]
        data = module.tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
        write(data.pop("uid").tolist(), data["response_mask"].unbind())
        return original(self, batch, metrics)

    module.PPOTrainer._update_actor = _update_actor


def record_legacy(module) -> None:
    original = module.RayPPOTrainer._update_actor

    @functools.wraps(original)
    def _update_actor(self, batch):
        write(batch.non_tensor_batch["uid"], batch.batch["response_mask"].unbind())
        return original(self, batch)

    module.RayPPOTrainer._update_actor = _update_actor


register_post_import_hook(record_v1, "verl.trainer.ppo.v1.trainer_base")
register_post_import_hook(record_legacy, "verl.trainer.ppo.ray_trainer")
