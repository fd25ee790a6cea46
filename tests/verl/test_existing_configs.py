"""Four of verl's own scripts with pv-rl's three overrides: each composes, and verl accepts what comes out.

The settings are those of the scripts, without paths and names; docs/existing_config.md says where they are from.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

from hydra import compose, initialize_config_module

from pv_rl.losses import resolve_mode
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.named import plain
from pv_rl.verl_adapter.config_groups import check_groups
from pv_rl.verl_adapter.validation import validate

ACTOR, ROLLOUT, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
OURS = (
    f"{ACTOR}.loss_agg_mode=balanced",
    "hydra.searchpath=[pkg://pv_rl.hydra_configs]",
    "reward=verdict_fluency",
)
COMMON = (
    "algorithm.adv_estimator=grpo",
    "algorithm.use_kl_in_reward=False",
    "data.filter_overlong_prompts=True",
    "actor_rollout_ref.model.path=MODEL",
    "actor_rollout_ref.model.use_remove_padding=True",
    "actor_rollout_ref.model.enable_gradient_checkpointing=True",
    f"{ACTOR}.use_dynamic_bsz=True",
    f"{ACTOR}.optim.lr=1e-6",
    f"{ACTOR}.entropy_coeff=0",
    f"{ROLLOUT}.name=vllm",
    f"{ROLLOUT}.tensor_model_parallel_size=2",
    f"{ROLLOUT}.gpu_memory_utilization=0.6",
    f"{ROLLOUT}.log_prob_use_dynamic_bsz=True",
)


def lengths(prompt: int, response: int, tokens: int) -> tuple[str, ...]:
    return (
        f"data.max_prompt_length={prompt}",
        f"data.max_response_length={response}",
        f"{ACTOR}.ppo_max_token_len_per_gpu={tokens}",
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu={tokens}",
        f"{REF}.log_prob_max_token_len_per_gpu={tokens}",
    )


SCRIPTS = {
    "grpo": (  # verl examples/grpo_trainer/run_qwen3_8b_fsdp.sh at 08aef7f
        *COMMON,
        *lengths(1024, 2048, 24576),
        "data.train_batch_size=1024",
        "data.truncation=error",
        f"{ACTOR}.ppo_mini_batch_size=256",
        f"{ACTOR}.use_kl_loss=True",
        f"{ACTOR}.kl_loss_coef=0.001",
        f"{ACTOR}.kl_loss_type=low_var_kl",
        f"{ROLLOUT}.n=5",
        f"{REF}.fsdp_config.param_offload=True",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=8",
    ),
    "gspo": (  # verl examples/gspo_trainer/run_qwen3_8b_fsdp.sh at 08aef7f
        *COMMON,
        *lengths(2048, 8192, 20480),
        "data.train_batch_size=512",
        "data.truncation=error",
        f"{ACTOR}.policy_loss.loss_mode=gspo",
        f"{ACTOR}.loss_agg_mode=seq-mean-token-mean",
        f"{ACTOR}.clip_ratio_low=3e-4",
        f"{ACTOR}.clip_ratio_high=4e-4",
        f"{ACTOR}.clip_ratio_c=10.0",
        f"{ACTOR}.ppo_mini_batch_size=128",
        f"{ACTOR}.use_kl_loss=False",
        f"{ACTOR}.fsdp_config.param_offload=True",
        f"{ACTOR}.fsdp_config.optimizer_offload=True",
        f"{ROLLOUT}.n=16",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=8",
    ),
    "dapo": (  # the settings of DAPO (arXiv 2503.14476) for verl 0.9's own group filtering
        *COMMON,
        *lengths(2048, 20480, 22528),
        "data.train_batch_size=512",
        "data.gen_batch_size=1536",
        "data.truncation=left",
        "algorithm.filter_groups.enable=True",
        "algorithm.filter_groups.metric=acc",
        "algorithm.filter_groups.max_num_gen_batches=10",
        f"{ACTOR}.loss_agg_mode=token-mean",
        f"{ACTOR}.clip_ratio_low=0.2",
        f"{ACTOR}.clip_ratio_high=0.28",
        f"{ACTOR}.clip_ratio_c=10.0",
        f"{ACTOR}.ppo_mini_batch_size=32",
        f"{ACTOR}.use_kl_loss=False",
        f"{ROLLOUT}.n=16",
        "reward.reward_manager.name=dapo",
        "+reward.reward_kwargs.overlong_buffer_cfg.enable=True",
        "+reward.reward_kwargs.overlong_buffer_cfg.len=4096",
        "+reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=1.0",
        "+reward.reward_kwargs.overlong_buffer_cfg.log=False",
        "+reward.reward_kwargs.max_resp_len=20480",
        "trainer.nnodes=16",
        "trainer.n_gpus_per_node=8",
    ),
    "async": (  # verl tests/special_e2e/run_v1_separate_async.sh at d2c0bd6
        *COMMON,
        *lengths(512, 512, 4096),
        "trainer.use_v1=True",
        "trainer.v1.trainer_mode=separate_async",
        "trainer.v1.separate_async.num_warmup_batches=1",
        "trainer.v1.separate_async.parameter_sync_step=4",
        "trainer.v1.sampler.max_off_policy_threshold=8",
        "trainer.v1.sampler.max_off_policy_strategy=drop",
        "data.train_batch_size=4",
        "data.gen_batch_size=1",
        "data.truncation=left",
        "algorithm.rollout_correction.bypass_mode=False",
        f"{ACTOR}.strategy=fsdp2",
        f"{ACTOR}.fsdp_config.fsdp_size=2",
        f"{ACTOR}.ppo_mini_batch_size=1",
        f"{ACTOR}.use_kl_loss=False",
        f"{ACTOR}.clip_ratio_low=0.2",
        f"{ACTOR}.clip_ratio_high=0.28",
        f"{ROLLOUT}.nnodes=1",
        f"{ROLLOUT}.n_gpus_per_node=4",
        f"{ROLLOUT}.n=4",
        f"{ROLLOUT}.calculate_log_probs=True",
        f"{ROLLOUT}.checkpoint_engine.backend=nccl",
        "reward.reward_manager.name=dapo",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=4",
    ),
}


def composed(*overrides: str):
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=list(overrides))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_verl_composes_with_our_three_overrides_and_changes_nothing_else(name):
    config, before = composed(*SCRIPTS[name], *OURS), composed(*SCRIPTS[name])

    validate(config)
    check_groups(config)
    assert resolve_mode(config.actor_rollout_ref.actor.loss_agg_mode).name == "balanced"
    function = config.reward.custom_reward_function
    assert (function.path, function.name) == ("pkg://pv_rl.rewards.named", "verdict_fluency")
    build_reward(function.name, {**plain(function.reward_kwargs), "ledger": None})

    before.actor_rollout_ref.actor.loss_agg_mode = "balanced"
    before.reward.custom_reward_function = function
    assert config == before


def test_groups_for_weighting_and_judge_can_be_appended_to_a_script():
    config = composed(*SCRIPTS["grpo"], *OURS[1:], "+recipe=balanced", "recipe.eta=0.3", "+judge=deepseek")
    validate(config)
    assert config.actor_rollout_ref.actor.loss_agg_mode == "balanced:0.3@prompt"
    judge = config.reward.custom_reward_function.reward_kwargs.judge
    assert [one.model for one in judge.endpoints] == ["deepseek-chat"]


def test_a_group_without_the_search_path_is_refused_and_not_added_as_a_word():
    done = subprocess.run(
        [sys.executable, "-m", "verl.trainer.main_ppo", "+recipe=dapo"],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 1
    assert "recipe=dapo was added to the config as a plain key" in done.stderr
    assert "hydra.searchpath=[pkg://pv_rl.hydra_configs]" in done.stderr


def test_a_key_of_somebody_else_that_is_named_like_a_group_is_left_alone():
    config = composed(*SCRIPTS["grpo"], "+recipe=mine")
    check_groups(config)
    config.recipe = "dapo"  # as a config file may say
    check_groups(config)
