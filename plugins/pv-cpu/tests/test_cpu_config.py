"""The config group composes with verl's configurations, and verl's own checks take the result."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

BASE = [
    "hydra.searchpath=[pkg://pv_cpu.hydra_configs]",
    "+cluster=cpu",
    "algorithm.adv_estimator=grpo",
    "data.train_batch_size=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
]


def composed(*overrides: str):
    with initialize_config_module(config_module="verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=[*BASE, *overrides])


def test_the_group_wins_over_verls_defaults_and_the_command_line_wins_over_the_group():
    config = composed("actor_rollout_ref.rollout.max_num_seqs=17", "reward.num_workers=3")
    rollout = config.actor_rollout_ref.rollout
    assert (rollout.name, rollout.tensor_model_parallel_size, rollout.max_num_seqs) == ("pv_cpu", 1, 17)
    assert (config.trainer.device, config.trainer.n_gpus_per_node, config.reward.num_workers) == ("cpu", 1, 3)


def test_actor_and_reference_use_fsdp2_without_compiling():
    config = composed().actor_rollout_ref
    for role in (config.actor, config.ref):
        assert (role.strategy, role.fsdp_config.strategy) == ("fsdp2", "fsdp2")
        assert (role.use_torch_compile, role.fsdp_config.use_torch_compile) == (False, False)
        assert role.fsdp_config.mixed_precision.param_dtype == "fp32"
    assert config.ref.fsdp_config.forward_only is True


def test_log_prob_batches_follow_the_actors_dynamic_batches():
    config = composed("actor_rollout_ref.actor.ppo_max_token_len_per_gpu=999").actor_rollout_ref
    assert (config.rollout.log_prob_use_dynamic_bsz, config.ref.log_prob_use_dynamic_bsz) == (True, True)
    assert (config.rollout.log_prob_max_token_len_per_gpu, config.ref.log_prob_max_token_len_per_gpu) == (
        999,
        999,
    )


def test_a_critic_starts_from_the_actors_model_with_fsdp2_in_float32():
    critic = composed("actor_rollout_ref.model.path=my-model").critic
    assert (critic.strategy, critic.fsdp.strategy, critic.fsdp.use_torch_compile) == ("fsdp2", "fsdp2", False)
    assert (critic.model.path, critic.model.tokenizer_path) == ("my-model", "my-model")
    assert critic.fsdp.mixed_precision.param_dtype == "fp32"
    assert critic.model.override_config.attn_implementation == "sdpa"


def test_verls_validation_takes_it():
    from verl.utils.config import validate_config

    validate_config(config=composed(), use_reference_policy=True, use_critic=False)


def test_every_value_of_the_group_exists_in_verl_or_is_one_that_only_the_group_adds():
    with initialize_config_module(config_module="verl.trainer.config", version_base=None):
        plain = compose("ppo_trainer")
    group = OmegaConf.load(Path(__file__).parents[1] / "src/pv_cpu/hydra_configs/cluster/cpu.yaml")
    added = {
        key
        for key, _ in leaves(OmegaConf.to_container(group))
        if OmegaConf.select(plain, key, default="absent") == "absent"
        and not key.startswith(("cluster.", "launch."))  # which pv-rl reads
    }
    assert {key.rsplit(".mixed_precision", 1)[0] for key in added} == {
        "actor_rollout_ref.model.override_config.attn_implementation",
        "actor_rollout_ref.rollout.name",  # "???" in verl: every run has to say it
        "actor_rollout_ref.actor.fsdp_config",
        "actor_rollout_ref.ref.fsdp_config",
        "critic.model.override_config.attn_implementation",
        "critic.fsdp",
        "ray_kwargs.ray_init.num_gpus",
        "ray_kwargs.ray_init.include_dashboard",
        "ray_kwargs.ray_init.object_store_memory",
    }


def leaves(node, prefix=""):
    for key, value in node.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict):
            yield from leaves(value, path)
        else:
            yield path, value


@pytest.mark.parametrize("backend", ["pv_cpu_file"])
def test_the_checkpoint_engine_needs_only_its_name(backend):
    config = composed(f"actor_rollout_ref.rollout.checkpoint_engine.backend={backend}")
    assert (
        config.actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module == "pv_cpu.checkpoint_engine"
    )
