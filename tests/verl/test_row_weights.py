"""The driver's part: the fields that it adds to a step, with padding rows and several mini-batches."""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch
from fake_trainer import FakeTrainer
from omegaconf import OmegaConf

from pv_rl import trainer_hooks
from pv_rl.losses import resolve_mode, response_weights
from pv_rl.trainer_hooks import our_modes
from pv_rl.verl_adapter.trainers import patch_legacy_trainer, patch_v1_trainer
from pv_runs import weight_metrics
from pv_runs.weight_metrics import weight_numbers

tensordict = pytest.importorskip("tensordict", reason="verl is not installed: pip install 'pv-rl[verl]'")

LENGTHS, UIDS = [3, 1, 0, 5, 2, 0], ["a", "a", "pad", "b", "b", "pad"]
ADVANTAGES = [1.0, -1.0, 0.0, 0.0, 0.0, 0.0]
VERDICTS = [True, False, True, None, True, True]
INFOS = [
    {"acc": 1.0, "verdict_true": float(v is True), "verdict_missing": float(v is None)} for v in VERDICTS
]
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
        advantages = [torch.where(mask == 1, a, torch.nan) for mask, a in zip(masks, ADVANTAGES, strict=True)]
        nested = {"response_mask": masks, "advantages": advantages}
        self.fields = tensordict.TensorDict(
            {name: torch.nested.as_nested_tensor(rows, layout=torch.jagged) for name, rows in nested.items()},
            batch_size=len(LENGTHS),
        )
        self.fields["uid"] = tensordict.NonTensorStack(*UIDS)
        self.fields["extra_fields"] = tensordict.NonTensorStack(
            *({"reward_extra_info": info} for info in INFOS)
        )
        self.put = {}

    def kv_batch_get(self, keys, partition_id, select_fields):
        if len(keys) < len(LENGTHS):  # a nested tensor cannot be sliced
            assert select_fields == ["extra_fields"]
            stack = tensordict.NonTensorStack(*({"reward_extra_info": info} for info in INFOS[: len(keys)]))
            return tensordict.TensorDict({"extra_fields": stack}, batch_size=len(keys))
        return self.fields.select(*select_fields)

    def kv_batch_put(self, keys, partition_id, fields):
        self.put.update(fields.items())
        return types.SimpleNamespace(keys=keys, partition_id=partition_id, fields=list(fields.keys()))


def v1_step(spec: str):
    store = Store()

    class PPOTrainer(FakeTrainer):
        def _compute_advantage(self, batch, metrics):
            metrics["advantages"] = True
            return batch

    module = types.SimpleNamespace(PPOTrainer=PPOTrainer, tq=store)
    patch_v1_trainer(module)  # pyright: ignore[reportArgumentType]
    batch = types.SimpleNamespace(keys=list("uvwxyz"), partition_id="train", fields=list(store.fields.keys()))
    metrics = {}
    return store, batch, PPOTrainer(config(spec))._compute_advantage(batch, metrics), metrics


def test_the_v1_driver_puts_weight_times_rows_beside_each_row_and_nothing_for_padding():
    store, _, after, metrics = v1_step("balanced")
    assert metrics["advantages"] is True
    assert store.put[FIELD].shape == (6, 1)
    assert store.put[FIELD].flatten().tolist() == pytest.approx(expected(), rel=1e-6)
    assert store.put[FIELD][[2, 5]].tolist() == [[0.0], [0.0]]
    assert FIELD in after.fields


@pytest.mark.parametrize("spec", ["token-mean", "dapo@batch"])
def test_the_v1_driver_adds_nothing_where_nothing_has_to_travel(spec):
    store, batch, after, metrics = v1_step(spec)
    assert store.put == {}
    assert after is batch
    assert ("pv_rl/effective_responses" in metrics) == (spec == "dapo@batch")


def check_step_metrics(metrics: dict[str, float]) -> None:
    """Rows 0, 1, 3, 4 count. Prompt a (3 and 1 tokens) and prompt b (5 and 2) have mass 1/2 each."""
    by_response, by_token = [1 / 4] * 4, [3 / 8, 1 / 8, 5 / 14, 1 / 7]
    share = [0.6 * r + 0.4 * t for r, t in zip(by_response, by_token, strict=True)]
    assert metrics["pv_rl/weight_share/advantage_positive"] == pytest.approx(share[0])
    assert metrics["pv_rl/weight_share/advantage_negative_verdict_false"] == pytest.approx(share[1])
    assert metrics["pv_rl/weight_share/verdict_true"] == pytest.approx(share[0] + share[3])
    assert metrics["pv_rl/weight_share/length_q4_verdict_none"] == pytest.approx(share[2])
    assert metrics["pv_rl/response_length/verdict_true"] == 2.5
    assert metrics["pv_rl/groups_without_signal"] == 0.5
    assert metrics["pv_rl/eta"] == 0.6


def test_a_hook_may_ask_for_the_extra_info_after_the_advantage_whatever_the_reward(monkeypatch):
    found = []
    monkeypatch.setattr(weight_metrics, "diagnose", lambda *_: {})
    monkeypatch.setattr(weight_metrics, "add_metrics", lambda state: found.extend(state.rows.infos))
    trainer_hooks._function.cache_clear()
    try:
        v1_step("balanced")
    finally:
        monkeypatch.undo()
        trainer_hooks._function.cache_clear()
    assert found == list(INFOS)


def test_the_v1_driver_says_what_the_weights_do():
    _, _, _, metrics = v1_step("balanced")
    check_step_metrics(metrics)


def test_where_no_reward_gives_verdicts_nothing_is_split_by_them(monkeypatch):
    monkeypatch.setitem(globals(), "INFOS", [{}] * 6)
    _, _, _, metrics = v1_step("balanced")
    assert metrics["pv_rl/weight_share/advantage_positive"] > 0
    assert not [name for name in metrics if "verdict" in name]


@pytest.mark.parametrize("odd", ["False", [1.0, 0.0], None, float("nan"), 7])
def test_a_verdict_that_is_no_flag_is_none(monkeypatch, odd):
    infos = [INFOS[0], *({"verdict_true": odd, "verdict_missing": 0.0} for _ in range(5))]
    monkeypatch.setitem(globals(), "INFOS", infos)
    _, _, _, metrics = v1_step("balanced")
    assert metrics["pv_rl/response_length/verdict_true"] == 3.0
    assert "pv_rl/response_length/verdict_false" not in metrics


def test_numbers_for_the_log_never_end_a_run(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("pv_runs.weight_metrics.diagnose", fail)
    store, _, _, metrics = v1_step("balanced")
    assert metrics["pv_rl/metrics_failed"] == 1.0
    assert store.put[FIELD].flatten().tolist() == pytest.approx(expected(), rel=1e-6)


def test_the_legacy_driver_adds_the_field_before_the_critic_and_the_actor():
    seen = []

    class RayPPOTrainer(FakeTrainer):
        def _update_critic(self, batch):
            seen.append(batch.batch[FIELD].flatten().tolist())

        def _update_actor(self, batch):
            seen.append(batch.batch[FIELD].flatten().tolist())
            return types.SimpleNamespace(meta_info={"metrics": {"actor/pg_loss": [0.0]}})

    module = types.SimpleNamespace(RayPPOTrainer=RayPPOTrainer, compute_advantage=lambda data: data)
    patch_legacy_trainer(module)  # pyright: ignore[reportArgumentType]
    mask = (torch.arange(5) < torch.tensor(LENGTHS)[:, None]).long()
    columns = {key: np.array([info[key] for info in INFOS]) for key in INFOS[0]} | {"uid": np.array(UIDS)}
    advantages = torch.where(mask == 1, torch.tensor(ADVANTAGES)[:, None], torch.nan)
    batch = types.SimpleNamespace(
        batch={"response_mask": mask, "advantages": advantages}, non_tensor_batch=columns
    )
    trainer = RayPPOTrainer(config("balanced"))
    trainer._update_critic(batch)
    check_step_metrics(trainer._update_actor(batch).meta_info["metrics"])
    assert seen[0] == seen[1] == pytest.approx(expected(), rel=1e-6)


def test_actor_and_critic_may_name_different_modes():
    specs = [mode.spec for mode in our_modes(config("balanced", "grpo"))]
    assert specs == ["balanced:0.6@prompt", "grpo@prompt"]
    assert our_modes(config("token-mean", "my-own-mode")) == []
    assert our_modes(OmegaConf.create({"actor_rollout_ref": {"actor": {}}})) == []


def test_the_first_step_whose_mass_is_far_from_1_is_a_warning_once(caplog):
    """12 of 3 x 100 tokens; a step in which no row counts has no mass, and is none."""
    mode = resolve_mode("dr_grpo:100")
    for lengths in ([0, 0, 0], [100, 100, 100], [2, 3, 7], [2, 3, 7]):
        weight_numbers(mode, lengths, "aaa", [1.0, 0.0, 1.0], [])
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "loss_agg_mode=dr_grpo:100@prompt: the mass of an update is 0.04 in this step" in warning
