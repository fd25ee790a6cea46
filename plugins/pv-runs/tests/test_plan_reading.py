"""What the plan reads, and what it says where it cannot."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from omegaconf import OmegaConf
from plan_configs import QWEN3_8B, config

from pv_rl.errors import ConfigError, DataError
from pv_runs.plan import make_plan
from pv_runs.typed_config import Settings

ACTOR = "actor_rollout_ref.actor"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("cluster", r"no cluster\.gpu.*cluster=paper80"),
        ("plan", r"/nowhere/a-model is not a folder with a config\.json"),
        ("data.train_batch_size", r"no data\.train_batch_size.*data\.train_batch_size=VALUE"),
        (f"{ACTOR}.use_kl_loss", r"no actor_rollout_ref\.actor\.use_kl_loss"),
        ("trainer.v1.trainer_mode", r"no trainer\.v1\.trainer_mode"),
    ],
)
def test_a_key_that_is_missing_is_named_with_what_to_do(key, text):
    with pytest.raises(ConfigError, match=text):
        make_plan(config(remove=(key,)))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"trainer.v1.trainer_mode": "async"}, "'async'.*sync, colocate_async, separate_async"),
        ({f"{ACTOR}.strategy": "megatron"}, "'megatron'.*fsdp, fsdp2"),
        ({"trainer.use_v1": False}, "trainer.use_v1=True"),
        ({"data.train_batch_size": "many"}, "'many'; it has to be a whole number"),
        ({"data.train_batch_size": 0}, "it has to be 1 or more"),
        ({"data.max_response_length": 10**400}, "larger than 1e"),
        ({f"{ACTOR}.use_kl_loss": 1}, "it has to be true or false"),
        ({"plan.train_mfuu": 0.4}, r"plan\.train_mfuu.*Settings of plan: response_tokens"),
        ({"plan.train_mfu": 1.4}, r"plan\.train_mfu.*given: 1.4"),
        ({"plan.response_tokens": 20_000}, "cuts at 16000 tokens"),
        ({"plan.model": {"hidden_size": 8}}, r"plan\.model\.num_hidden_layers"),
        ({"plan.model": {**QWEN3_8B, "num_key_value_heads": 5}}, "a multiple of num_key_value_heads 5"),
        ({"cluster.gpu.memory_gib": -1}, r"cluster\.gpu\.memory_gib"),
        (
            {"trainer.nnodes": "${oc.env:NOBODY_SETS_THIS}"},
            r"trainer\.nnodes cannot be read.*NOBODY_SETS_THIS",
        ),
        ({"actor_rollout_ref.model.lora_rank": 8}, "lora_rank is set"),
        ({"reward.custom_reward_function.reward_kwargs.judge": {"endpoints": []}}, "judge=rules for none"),
    ],
)
def test_a_value_that_is_wrong_is_named_with_what_is_allowed(changes, text):
    with pytest.raises(ConfigError, match=text):
        make_plan(config(changes))


def test_keys_that_are_not_read_need_not_resolve():
    made = config()
    with pytest.raises(ConfigError, match="A_VARIABLE_THAT_NOBODY_SETS"):
        Settings(config=made).value("trainer.default_local_dir")
    assert make_plan(made).runs


def test_the_config_is_left_as_it_is():
    made = config()
    before = OmegaConf.to_yaml(made)
    make_plan(made)
    assert OmegaConf.to_yaml(made) == before


def test_a_folder_with_a_config_json_goes_before_the_plans_own_shape(tmp_path):
    shape = {**QWEN3_8B, "num_hidden_layers": 2, "architectures": ["Qwen3ForCausalLM"], "rope_scaling": None}
    (tmp_path / "config.json").write_text(json.dumps(shape))
    setup = make_plan(config({"actor_rollout_ref.model.path": str(tmp_path)})).setup
    assert setup.model.num_hidden_layers == 2
    assert setup.model_source == str(tmp_path / "config.json")


def test_a_model_without_grouped_queries_or_head_dim_is_read(tmp_path):
    shape = {key: value for key, value in QWEN3_8B.items() if key not in ("num_key_value_heads", "head_dim")}
    (tmp_path / "config.json").write_text(json.dumps(shape))
    model = make_plan(config({"actor_rollout_ref.model.path": str(tmp_path)})).setup.model
    assert (model.num_key_value_heads, model.key_width) == (32, 4096)


def test_a_mixture_of_experts_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**QWEN3_8B, "num_experts": 128}))
    with pytest.raises(ConfigError, match="128 experts"):
        make_plan(config({"actor_rollout_ref.model.path": str(tmp_path)}))


@pytest.mark.parametrize("text", ["{", "[]", "NaN", "[" * 100_000])
def test_a_broken_config_json_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DataError, match=r"config\.json cannot be read as JSON"):
        make_plan(config({"actor_rollout_ref.model.path": str(tmp_path)}))


def test_micro_batches_by_rows_count_the_longest_row():
    changes = {f"{ACTOR}.use_dynamic_bsz": False, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 3}
    log_prob = "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"
    training = make_plan(config({**changes, log_prob: 2})).setup.training
    assert (training.update_tokens, training.log_prob_tokens) == (3 * 12_096, 2 * 12_096)


def test_neither_torch_nor_verl_is_imported():
    code = "import sys, pv_runs.plan, pv_runs.plan.command; print({'torch', 'verl', 'ray', 'hydra'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
