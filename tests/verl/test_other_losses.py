"""verl's losses beside plain PPO, on verl's own functions: every policy loss, distillation, and bypass mode."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
import torch
from micro_batch import Step, actor_config, nested
from verl.trainer.distillation import losses as distillation
from verl.trainer.ppo.core_algos import POLICY_LOSS_REGISTRY
from verl.workers.config import DistillationLossConfig, PolicyLossConfig
from verl.workers.utils import losses

from pv_rl.errors import VerlError
from pv_rl.losses import response_weights

LENGTHS = [3, 7, 2, 9, 1, 5]
GROUPS = ["a", "a", "b", "b", "b", "b"]
ROWS = list(range(6))
SPECS = ["balanced:0.6", "balanced:0.6@batch"]
OWN_WAY = {"sapo", "geo_mean"}


def weights_of(spec: str) -> torch.Tensor:
    return response_weights(spec, LENGTHS, GROUPS)


def policy_gradients(spec: str, loss_mode: str) -> list[torch.Tensor]:
    torch.manual_seed(0)  # clip_cov draws which tokens it clips
    step = Step(LENGTHS, GROUPS, spec)
    config = actor_config(spec, loss_mode, use_kl_loss=False, entropy_coeff=0.0)
    if loss_mode == "dro":
        object.__setattr__(config.policy_loss, "dro_beta", 1.0)
    model_output, data = step.micro_batch(ROWS, global_batch_size=6, batch_num_tokens=sum(LENGTHS))
    losses.ppo_loss(config, model_output, data)[0].backward()
    return step.gradients()[: len(ROWS)]


@pytest.mark.parametrize("loss_mode", sorted(POLICY_LOSS_REGISTRY))
def test_each_policy_loss_of_verl_is_weighted_or_refused(loss_mode):
    """Divided by its weight, a token's gradient is the same under any two weightings."""
    if loss_mode in OWN_WAY:
        with pytest.raises(VerlError, match="aggregates in a way of its own"):
            policy_gradients("balanced:0.6", loss_mode)
        return
    by_spec = []
    for spec in ("balanced:0.6", "grpo"):
        gradients = policy_gradients(spec, loss_mode)
        by_spec.append([g / w for g, w in zip(gradients, weights_of(spec).tolist(), strict=True)])
    assert max(gradient.abs().max() for gradient in by_spec[0]) > 0.1
    for one, other in zip(*by_spec, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def with_teacher(step: Step, rows: list[int], gap: float):
    """`(model_output, data)` where the teacher's log-prob of each token is `gap` above the student's."""
    model_output, data = step.micro_batch(rows, global_batch_size=6, batch_num_tokens=sum(LENGTHS))
    data["teacher_logprobs"] = nested(
        [
            torch.cat([torch.zeros(1), log.detach() + gap, torch.zeros(1)])[:, None]
            for log in map(step.log_probs.__getitem__, rows)
        ]
    )
    return model_output, data


def distil(step: Step, spec: str, cuts: list[list[int]], gap: float, **settings) -> dict:
    """Backpropagate verl's distillation loss, micro-batch by micro-batch; the metrics of the last."""
    config = actor_config(spec, "vanilla", use_kl_loss=False)
    loss_config = DistillationLossConfig(**settings)
    metrics = {}
    for rows in cuts:
        model_output, data = with_teacher(step, rows, gap)
        loss, metrics = distillation.distillation_ppo_loss(
            config, SimpleNamespace(distillation_loss=loss_config), model_output, data
        )
        loss.backward()
    return metrics


@pytest.mark.parametrize("cuts", [[ROWS], [[0, 5], [3], [2, 4, 1]]], ids=["whole", "cut"])
@pytest.mark.parametrize("spec", SPECS)
def test_a_supervised_distillation_loss_is_weighted(spec, cuts):
    """mse is 0.5 (s - t)^2 a token, with the derivative s - t = -gap."""
    step = Step(LENGTHS, GROUPS, spec)
    distil(step, spec, cuts, 0.5, loss_mode="mse", use_task_rewards=False, use_policy_gradient=False)
    for row, weight in enumerate(weights_of(spec).tolist()):
        assert step.gradients()[row].tolist() == pytest.approx([-0.5 * weight] * LENGTHS[row], rel=1e-5)


@pytest.mark.parametrize("spec", SPECS)
def test_a_distillation_reward_is_weighted(spec):
    """k1 is s - t = -gap, so the advantage is gap and the policy gradient -gap a token at ratio 1."""
    step = Step(LENGTHS, GROUPS, spec)
    step.log_probs = [old.clone().requires_grad_() for old in step.old_log_probs]
    metrics = distil(
        step, spec, [ROWS], 0.5, loss_mode="k1", use_task_rewards=False, use_policy_gradient=True
    )
    for row, weight in enumerate(weights_of(spec).tolist()):
        assert step.gradients()[row].tolist() == pytest.approx([-0.5 * weight] * LENGTHS[row], rel=1e-5)
    assert metrics["pv_rl/update_mass"].aggregate() == pytest.approx(1.0, rel=1e-6)


def test_distillation_beside_a_task_reward_weights_both():
    step = Step(LENGTHS, GROUPS, "balanced:0.6")
    step.log_probs = [old.clone().requires_grad_() for old in step.old_log_probs]
    step.advantages = [torch.full((n,), 2.0) for n in LENGTHS]
    distil(
        step,
        "balanced:0.6",
        [ROWS],
        0.5,
        loss_mode="mse",
        use_task_rewards=True,
        use_policy_gradient=False,
        distillation_loss_coef=3.0,
    )
    for row, weight in enumerate(weights_of("balanced:0.6").tolist()):
        slope = -2.0 - 3.0 * 0.5
        assert step.gradients()[row].tolist() == pytest.approx([slope * weight] * LENGTHS[row], rel=1e-5)


def test_distillation_in_a_mode_of_verls_own_is_left_to_verl():
    step = Step(LENGTHS, GROUPS)
    metrics = distil(
        step, "token-mean", [ROWS], 0.5, loss_mode="mse", use_task_rewards=False, use_policy_gradient=False
    )
    assert step.gradients()[0].tolist() == pytest.approx([-0.5 / sum(LENGTHS)] * 3, rel=1e-5)
    assert not any(name.startswith("pv_rl") for name in metrics)


def test_distillation_of_rows_that_came_without_weights_stops_the_run():
    step = Step(LENGTHS, GROUPS)
    with pytest.raises(VerlError, match="without the field"):
        distil(step, "balanced", [ROWS], 0.5, loss_mode="mse", use_policy_gradient=False)


def test_what_bypass_mode_rejects_in_the_loss_is_silenced_and_still_counted():
    """Its rejection depends on the policy of this very update, so no row's final length is known before.

    Every token of row 1 and the first of row 3 are far from the rollout's: their gradient is 0, and the others weigh
    what the lengths before the rejection give them.
    """
    step = Step(LENGTHS, GROUPS, "balanced:0.6")
    step.advantages = [torch.full((n,), 2.0) for n in LENGTHS]
    step.log_probs = [old.clone() for old in step.old_log_probs]
    step.log_probs[1] += 1.0
    step.log_probs[3][0] += 1.0
    step.log_probs = [log.requires_grad_() for log in step.log_probs]
    correction = {"rollout_rs": "token_k1", "rollout_rs_threshold": "0.9_1.1"}
    config = actor_config("balanced:0.6", use_kl_loss=False)
    policy_loss = PolicyLossConfig(loss_mode="bypass_mode", rollout_correction=correction)
    object.__setattr__(config, "policy_loss", policy_loss)
    model_output, data = step.micro_batch(ROWS, global_batch_size=6, batch_num_tokens=sum(LENGTHS))
    losses.ppo_loss(config, model_output, data)[0].backward()
    for row, weight in enumerate(weights_of("balanced:0.6").tolist()):
        expected = [-2.0 * weight] * LENGTHS[row]
        if row == 1:
            expected = [0.0] * LENGTHS[row]
        if row == 3:
            expected[0] = 0.0
        assert step.gradients()[row].tolist() == pytest.approx(expected, rel=1e-5)
