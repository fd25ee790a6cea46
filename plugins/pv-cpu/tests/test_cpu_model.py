"""Building the model and loading the trainer's weights."""

import copy

import pytest
import torch
from transformers import Qwen3Config

from pv_cpu.errors import UnsupportedOnCpuError, WeightSyncError
from pv_cpu.rollout import model as models


@pytest.fixture
def model(tiny_model):
    return models.build(tiny_model.config, "float32", 128)


@pytest.fixture
def weights(tiny_model):
    return {name: tensor.clone() for name, tensor in tiny_model.state_dict().items()}


def test_all_weights_are_loaded(model, weights):
    models.load_weights(model, weights)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


def test_a_tied_weight_may_come_under_one_name_only(model, weights):
    del weights["lm_head.weight"]
    models.load_weights(model, weights)
    assert torch.equal(model.lm_head.weight, weights["model.embed_tokens.weight"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda w: w.pop("model.norm.weight"), "never arrived: model.norm.weight"),
        (lambda w: w.update(extra=torch.ones(1)), "unknown to the rollout model: extra"),
        (lambda w: w.update({"model.norm.weight": torch.ones(3)}), r"norm.weight \(3,\) instead of \(32,\)"),
    ],
    ids=["missing", "unexpected", "shape"],
)
def test_weights_that_do_not_fit_are_refused_and_none_is_loaded(model, weights, damage, message):
    before = copy.deepcopy(model.state_dict())
    damage(weights)
    with pytest.raises(WeightSyncError, match=message):
        models.load_weights(model, weights)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_building_leaves_the_configuration_of_the_trainer_alone(tiny_model, model):
    assert tiny_model.config._attn_implementation == "sdpa"
    assert model.config._attn_implementation == "pv_cpu"


def test_a_sliding_window_shorter_than_the_context_is_refused():
    config = Qwen3Config(num_hidden_layers=2, layer_types=["full_attention", "sliding_attention"])
    config.sliding_window = 64
    with pytest.raises(UnsupportedOnCpuError, match=r"sliding_attention.*max_model_len=128"):
        models.build(config, "float32", 128)


def test_an_unknown_dtype_is_refused(tiny_model):
    with pytest.raises(UnsupportedOnCpuError, match="'int4' is not supported; use one of float32"):
        models.build(tiny_model.config, "int4", 128)


def test_a_small_model_decodes_with_one_thread_unless_told_otherwise(model, monkeypatch):
    monkeypatch.delenv("PV_CPU_ROLLOUT_THREADS", raising=False)
    assert models.decoding_threads(model) == 1
    monkeypatch.setenv("PV_CPU_ROLLOUT_THREADS", "3")
    assert models.decoding_threads(model) == 3
    monkeypatch.setenv("PV_CPU_ROLLOUT_THREADS", "two")
    with pytest.raises(UnsupportedOnCpuError, match="'two' is not a positive whole number"):
        models.decoding_threads(model)
