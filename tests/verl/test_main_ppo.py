"""The real `verl.trainer.main_ppo` on a CPU with our modes, on each of its trainers, and without pv-rl."""

from __future__ import annotations

import pytest
from reference import check_reference_loop
from trainer import check_rewards, check_step_metrics, check_weights, main_ppo, read_metrics, train

pytestmark = pytest.mark.slow
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")

SPEC = "balanced:0.6"
MODE = f"actor_rollout_ref.actor.loss_agg_mode={SPEC}"


def test_two_steps_train_with_the_papers_weights(tmp_path):
    train(tmp_path, MODE, "trainer.val_before_train=True")
    check_weights(tmp_path, SPEC)
    check_rewards(tmp_path)
    check_step_metrics(tmp_path, SPEC)
    check_reference_loop(tmp_path, SPEC)
    metrics = read_metrics(tmp_path)
    assert {"actor/kl_loss", "actor/pg_loss", "actor/entropy"} <= set(metrics[1])
    assert {"val-core/lab/right/acc/mean@1", "val-core/lab/wrong/acc/mean@1"} <= set(metrics[0])


@pytest.mark.paths
def test_without_pv_rl_verl_refuses_the_same_config_in_its_own_words(tmp_path):
    done = main_ppo(tmp_path, MODE, VERL_USE_EXTERNAL_PLUGINS="pv_cpu")
    assert done.returncode != 0
    assert f"Invalid loss_agg_mode: {SPEC}" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_misspelt_mode_stops_the_run_at_start_with_the_nearest_name(tmp_path):
    done = main_ppo(tmp_path, "actor_rollout_ref.actor.loss_agg_mode=balancd")
    assert done.returncode != 0
    assert "Did you mean balanced?" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()
