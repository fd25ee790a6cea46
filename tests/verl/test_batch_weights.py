"""Scope `batch` in the worker: totals of the mini-batch over all ranks, of the rows that count."""

from __future__ import annotations

import functools
import types

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
import torch
from micro_batch import Step, actor_config
from verl.workers import engine_workers
from verl.workers.utils import losses

from pv_rl.errors import VerlError
from pv_rl.losses import resolve_mode, response_weights
from pv_rl.verl_adapter import batch_weights

LENGTHS = [3, 7, 2, 4]


@pytest.fixture
def worker(monkeypatch):
    """verl's own `train_batch` is not run; what it is given is kept. The other rank of two has rows of 5, 0 and 1."""

    def gather(lengths, group):
        assert group == "dp"
        return [[5, 0, 1], lengths], 1

    def make(spec: str, *without: str):
        seen = types.SimpleNamespace(data=None)

        class TrainingWorker:
            loss_fn = functools.partial(losses.ppo_loss, config=actor_config(spec))
            engine = types.SimpleNamespace(get_data_parallel_group=lambda: "dp")

            def train_batch(self, data):
                seen.data = data

        monkeypatch.setattr(batch_weights, "_gather", gather)
        batch_weights.patch_training_worker(
            types.SimpleNamespace(TrainingWorker=TrainingWorker, tu=engine_workers.tu)
        )
        step = Step(LENGTHS, list("aabb"))
        step.masks[2] = torch.zeros(2, dtype=torch.long)  # abstained: its tokens are still there
        _, data = step.micro_batch(range(4), global_batch_size=8, batch_num_tokens=99)  # pyright: ignore
        for name in without:
            del data[name]
        TrainingWorker().train_batch(data)
        return seen.data

    return make


@pytest.mark.parametrize("spec", ["balanced:0.3@batch", "grpo@batch", "vl_norm:0.5:64@batch"])
def test_rows_of_all_ranks_that_count_make_one_group(worker, spec):
    data = worker(spec)
    mode = resolve_mode(spec)
    everywhere = response_weights(mode, [5, 0, 1, 3, 7, 0, 4], [0] * 7)
    field = data[f"pv_rl_row_weight/{mode.spec}"]
    assert (field.flatten() / 8).tolist() == pytest.approx(everywhere[3:].tolist(), rel=1e-12)
    totals = batch_weights.batch_totals(data)
    assert totals is not None
    assert (totals.num_responses, totals.num_tokens) == (5, 20)


def test_signs_of_rows_without_advantages_are_refused(worker):
    with pytest.raises(VerlError, match=r"loss_agg_mode=ba@batch.*without the field 'advantages'"):
        worker("ba@batch", "advantages")


@pytest.mark.parametrize("spec", ["balanced", "token-mean"])
def test_nothing_is_counted_for_other_modes(worker, spec):
    data = worker(spec)
    assert not [name for name in data.keys() if name.startswith("pv_rl")]  # noqa: SIM118
    assert batch_weights.batch_totals(data) is None


def test_rows_that_do_not_count_are_outside_verls_totals_for_our_modes_alone():
    """Of four rows one is padding: verl's mean over responses divides by four, ours by three."""

    def loss(spec: str) -> float:
        step = Step([3, 7, 2, 4], list("aabb"), spec)
        step.masks[3] = torch.zeros(4, dtype=torch.long)
        if spec.endswith("@batch"):
            step.fields, step.totals = batch_weights.batch_fields(
                resolve_mode(spec), [[3, 7, 2, 0]], 0, rows=4
            )
        config = actor_config(spec, use_kl_loss=False)
        model_output, data = step.micro_batch([0, 1, 2, 3], global_batch_size=4, batch_num_tokens=16)
        return losses.ppo_loss(config, model_output, data)[0].item()

    assert loss("grpo@batch") == pytest.approx(loss("seq-mean-token-mean") * 4 / 3, rel=1e-6)
    assert loss("dapo@batch") == pytest.approx(loss("token-mean") * 16 / 12, rel=1e-6)


def test_a_mini_batch_in_which_no_row_counts_has_no_gradient():
    for spec in ("grpo@batch", "dapo@batch", "balanced@batch"):
        step = Step([3, 2], list("ab"), spec)
        step.masks = [torch.zeros(3, dtype=torch.long), torch.zeros(2, dtype=torch.long)]
        step.fields, step.totals = batch_weights.batch_fields(resolve_mode(spec), [[0, 0]], 0, rows=2)
        model_output, data = step.micro_batch([0, 1], global_batch_size=2, batch_num_tokens=5)
        loss, _ = losses.ppo_loss(actor_config(spec), model_output, data)
        loss.backward()
        assert loss.item() == 0.0
        assert all(grad is None or not grad.any() for grad in step.gradients())
