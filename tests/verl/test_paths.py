"""The paths of verl beside its default trainer, each run for two steps: the weights that its workers used are exact.

What an update was given is written down in the driver, after verl has rejected what it rejects there.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trainer import check_weights, main_ppo, read_metrics, train

pytestmark = [pytest.mark.slow, pytest.mark.paths]
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

SPEC = "balanced:0.6"
MODE = f"actor_rollout_ref.actor.loss_agg_mode={SPEC}"
APART = (  # rollout in a process of its own, which gets the weights through a file
    "actor_rollout_ref.rollout.checkpoint_engine.backend=pv_cpu_file",
    "actor_rollout_ref.rollout.nnodes=1",
    "actor_rollout_ref.rollout.n_gpus_per_node=1",
)
# Rejects every token that is likelier to the trainer than to the rollout, which rounding decides for most of them.
REJECT = {"rollout_rs": "token_k1", "rollout_rs_threshold": "0.5_1.0"}


def recorded(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]


def test_separate_async_with_a_critic_and_decoupled_rollout_correction(tmp_path):
    """Whole rows may be rejected, and the critic has a weighting of its own, by the signs of the advantages."""
    train(
        tmp_path,
        MODE,
        *APART,
        "trainer.v1.trainer_mode=separate_async",
        "trainer.v1.separate_async.parameter_sync_step=1",
        "algorithm.adv_estimator=gae",
        "critic.loss_agg_mode=ba",
        "algorithm.rollout_correction.rollout_is=token",
        *(f"algorithm.rollout_correction.{name}={value}" for name, value in REJECT.items()),
        "actor_rollout_ref.rollout.calculate_log_probs=True",
        "actor_rollout_ref.actor.policy_loss.loss_mode=vanilla",
        record=True,
    )
    check_weights(tmp_path, SPEC)
    check_weights(tmp_path, "ba", part="critic")
    for step, row in enumerate(recorded(tmp_path), start=1):
        metrics = read_metrics(tmp_path)[step]
        kept = sum(row["lengths"]) / (metrics["response_length/mean"] * len(row["lengths"]))
        assert kept == pytest.approx(1 - metrics["rollout_corr/rollout_rs_masked_fraction"], rel=1e-4)
        assert 0.1 < kept < 0.99


def test_one_step_off_policy_in_bypass_mode_weighs_by_the_lengths_before_its_rejection(tmp_path):
    """Bypass mode rejects in the loss function, by the policy of that update: too late for any weight."""
    where = "actor_rollout_ref.actor.policy_loss"
    train(
        tmp_path,
        MODE,
        *APART[:1],
        "+rollout.nnodes=1",
        "+rollout.n_gpus_per_node=1",
        "actor_rollout_ref.hybrid_engine=False",
        "actor_rollout_ref.rollout.calculate_log_probs=True",
        "algorithm.rollout_correction.bypass_mode=True",
        f"{where}.loss_mode=bypass_mode",
        *(f"+{where}.rollout_correction.{name}={value}" for name, value in REJECT.items()),
        "trainer.rollout_data_dir=null",  # verl 0.9.1 cannot dump here: the trainer has no _dump_executor
        module="verl.experimental.one_step_off_policy.main_ppo",
        record=True,
    )
    check_weights(tmp_path, SPEC)
    for step, row in enumerate(recorded(tmp_path), start=1):
        metrics = read_metrics(tmp_path)[step]
        assert sum(row["lengths"]) / len(row["lengths"]) == pytest.approx(metrics["response_length/mean"])
        # In the first step, rounding alone decides which ratios are above 1.0: the share depends on the processor.
        assert 0 < metrics["actor/rollout_corr/rollout_rs_masked_fraction"] < 0.9


def test_colocate_async_on_two_ranks_with_two_mini_batches_two_epochs_and_shuffling(tmp_path):
    train(
        tmp_path,
        MODE,
        "trainer.v1.trainer_mode=colocate_async",
        "trainer.n_gpus_per_node=2",
        "actor_rollout_ref.actor.ppo_mini_batch_size=2",
        "actor_rollout_ref.actor.ppo_epochs=2",
        "actor_rollout_ref.actor.shuffle=True",
        "actor_rollout_ref.actor.policy_loss.loss_mode=vanilla",
        "actor_rollout_ref.actor.entropy_coeff=0.001",
        record=True,
    )
    check_weights(tmp_path, SPEC, mini_batches=2)


def test_without_pv_rl_verl_refuses_the_same_config_in_its_own_words(tmp_path):
    done = main_ppo(tmp_path, MODE, VERL_USE_EXTERNAL_PLUGINS="pv_cpu")
    assert done.returncode != 0
    assert f"Invalid loss_agg_mode: {SPEC}" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_misspelt_mode_stops_the_run_at_start_with_the_nearest_name(tmp_path):
    """As `test_ppo_loss.py` shows of verl's config classes; here of the command."""
    done = main_ppo(tmp_path, "actor_rollout_ref.actor.loss_agg_mode=balancd")
    assert done.returncode != 0
    assert "Did you mean balanced?" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_misspelt_reward_stops_one_step_off_before_a_worker_loads_the_model(tmp_path):
    """It checks the config in Ray. Whoever loads this model fails with another error."""
    reward = ["reward.custom_reward_function.name=verdct", "actor_rollout_ref.model.path=/no/model"]
    rollout = ["+rollout.nnodes=1", "+rollout.n_gpus_per_node=1", "actor_rollout_ref.hybrid_engine=False"]
    module = "verl.experimental.one_step_off_policy.main_ppo"
    done = main_ppo(tmp_path, *reward, *APART[:1], *rollout, module=module)
    assert done.returncode != 0
    assert "name=verdct: there is no reward 'verdct'. Did you mean verdict?" in done.stdout + done.stderr
