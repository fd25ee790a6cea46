"""The driver's part: the fields that it adds to a step, with padding rows and several mini-batches."""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from pv_rl.losses import response_weights
from pv_rl.verl_adapter.row_weights import patch_legacy_trainer, patch_v1_trainer, prompt_modes

tensordict = pytest.importorskip("tensordict", reason="verl is not installed: pip install 'pv-rl[verl]'")

LENGTHS, UIDS = [3, 1, 0, 5, 2, 0], ["a", "a", "pad", "b", "b", "pad"]
FIELD = "pv_rl_row_weight/balanced:0.6@prompt"


def config(actor: str, critic: str | None = None):
    return OmegaConf.create(
        {
            "actor_rollout_ref": {"actor": {"loss_agg_mode": actor}},
            "critic": {"loss_agg_mode": critic or actor},
        }
    )


def expected() -> list[float]:
    return (response_weights("balanced:0.6", LENGTHS, UIDS) * len(LENGTHS)).tolist()


class Store:
    """The part of TransferQueue that is used: named fields a row, and metadata that lists them."""

    def __init__(self):
        masks = [torch.tensor([1] * n + [0]) for n in LENGTHS]
        self.fields = tensordict.TensorDict(
            {"response_mask": torch.nested.as_nested_tensor(masks, layout=torch.jagged)},
            batch_size=len(LENGTHS),
        )
        self.fields["uid"] = tensordict.NonTensorStack(*UIDS)
        self.put = {}

    def kv_batch_get(self, keys, partition_id, select_fields):
        return self.fields.select(*select_fields)

    def kv_batch_put(self, keys, partition_id, fields):
        self.put.update(fields.items())
        return types.SimpleNamespace(keys=keys, partition_id=partition_id, fields=list(fields.keys()))


def v1_step(spec: str):
    store = Store()

    class PPOTrainer:
        def __init__(self):
            self.config = config(spec)

        def _compute_advantage(self, batch, metrics):
            metrics["advantages"] = True
            return batch

    module = types.SimpleNamespace(PPOTrainer=PPOTrainer, tq=store)
    patch_v1_trainer(module)  # pyright: ignore[reportArgumentType]
    batch = types.SimpleNamespace(keys=list("uvwxyz"), partition_id="train", fields=["uid"])
    metrics = {}
    return store, batch, PPOTrainer()._compute_advantage(batch, metrics), metrics


def test_the_v1_driver_puts_weight_times_rows_beside_each_row_and_nothing_for_padding():
    store, _, after, metrics = v1_step("balanced")
    assert metrics == {"advantages": True}
    assert store.put[FIELD].shape == (6, 1)
    assert store.put[FIELD].flatten().tolist() == pytest.approx(expected(), rel=1e-6)
    assert store.put[FIELD][[2, 5]].tolist() == [[0.0], [0.0]]
    assert FIELD in after.fields


@pytest.mark.parametrize("spec", ["token-mean", "dapo@batch"])
def test_the_v1_driver_adds_nothing_where_nothing_has_to_travel(spec):
    store, batch, after, _ = v1_step(spec)
    assert store.put == {}
    assert after is batch


def test_the_legacy_driver_adds_the_field_before_the_critic_and_the_actor():
    seen = []

    class RayPPOTrainer:
        def __init__(self):
            self.config = config("balanced")

        def _update_critic(self, batch):
            seen.append(batch.batch[FIELD].flatten().tolist())

        def _update_actor(self, batch):
            seen.append(batch.batch[FIELD].flatten().tolist())

    patch_legacy_trainer(types.SimpleNamespace(RayPPOTrainer=RayPPOTrainer))  # pyright: ignore[reportArgumentType]
    mask = (torch.arange(5) < torch.tensor(LENGTHS)[:, None]).long()
    batch = types.SimpleNamespace(batch={"response_mask": mask}, non_tensor_batch={"uid": np.array(UIDS)})
    trainer = RayPPOTrainer()
    trainer._update_critic(batch)
    trainer._update_actor(batch)
    assert seen[0] == seen[1] == pytest.approx(expected(), rel=1e-6)


def test_actor_and_critic_may_name_different_modes():
    specs = {mode.spec for mode in prompt_modes(config("balanced", "grpo"))}
    assert specs == {"balanced:0.6@prompt", "grpo@prompt"}
    assert prompt_modes(config("token-mean", "my-own-mode")) == set()
    assert prompt_modes(OmegaConf.create({"actor_rollout_ref": {"actor": {}}})) == set()
