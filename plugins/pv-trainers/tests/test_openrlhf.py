"""OpenRLHF 0.11.2: its training loop under cuts against the oracle, what the adapter relies on and what it refuses."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from drivers import openrlhf as driver
from grid.oracle import Loss
from stubs import stubbed
from trainer_grid import OURS

from pv_rl.errors import ConfigError, LossModeError, SetupError

with stubbed("deepspeed", "flash_attn", "vllm"):
    import openrlhf.models
    import ray
    from openrlhf.trainer import ppo_trainer, ppo_trainer_async
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
    from openrlhf.utils import loss_utils
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    from pv_trainers import openrlhf as adapter
    from pv_trainers import train_openrlhf

TOLERANCE = 5e-6
CUTS = {
    "gradient accumulation": {"micro_rows": 2},
    "two updates, shuffled, abstained": {
        "micro_rows": 2,
        "mini_rows": 6,
        "shuffle": True,
        "abstained": (1, 5, 6),
    },
    "dynamic batches, tool tokens": {"micro_rows": None, "micro_tokens": 130, "holes": 0.3},
    "a group abstained": {"micro_rows": 12, "abstained": (4, 5, 6, 7)},
    "sequence ratios": {"micro_rows": 2, "loss": Loss(policy="gspo")},
    "two ranks": {"micro_rows": 1, "mini_rows": 6, "ranks": 2, "holes": 0.3, "abstained": (2, 9)},
}


@pytest.mark.parametrize("mode", OURS)
@pytest.mark.parametrize("cut", CUTS)
def test_each_mode_has_the_oracles_gradient_however_openrlhf_cuts_the_step(whole, cut, mode):
    step = whole.step(**CUTS[cut])
    updates = driver.run_updates(whole.model, step, mode)
    assert len(updates) == len(step.rows) // (step.case.mini_rows or 12)
    assert whole.error(step, updates, mode) < TOLERANCE


@pytest.mark.parametrize("cut", [cut for cut in CUTS if cut != "sequence ratios"])
@pytest.mark.parametrize("name", driver.OWN)
def test_its_own_modes_are_those_of_the_batch_of_an_update(whole, cut, name):
    step = whole.step(**CUTS[cut])
    updates = driver.run_updates(whole.model, step, name)
    assert whole.error(step, updates, driver.OWN[name], own=True) < TOLERANCE


def test_with_gspo_it_takes_token_mean_for_a_mean_over_sequences(whole):
    step = whole.step(**CUTS["sequence ratios"])
    updates = driver.run_updates(whole.model, step, "token-mean")
    assert whole.error(step, updates, "grpo@batch", own=True) < TOLERANCE
    assert whole.error(step, updates, "dapo@batch", own=True) > 1e-2


def test_the_kl_term_keeps_the_token_mean(whole):
    loss = Loss(kl="low_var_kl", kl_coef=0.3)
    step = whole.step(micro_rows=2, loss=loss)
    [(_, gradient)] = driver.run_updates(whole.model, step, "balanced:0.6")
    policy = dict(enumerate(whole.weights(step, "balanced:0.6")))
    tokens = dict(enumerate(whole.weights(step, "dapo@batch")))
    without = replace(loss, kl=None)
    expected = whole.gradient(step, policy, without)
    expected += whole.gradient(step, tokens, loss) - whole.gradient(step, tokens, without)
    assert (gradient.double() - expected).norm() < TOLERANCE * expected.norm()
    assert whole.error(step, [(list(range(12)), gradient)], "balanced:0.6") > 1e-2


def test_a_divisor_of_a_micro_batch_would_show(whole):
    def local(batches, strategy, accumulated, mask_of):
        return ((batch, loss_utils.get_loss_batch_info(strategy, mask_of(batch))) for batch in batches)

    step = whole.step(micro_rows=2, abstained=(1, 5))
    step.rows[:] = [
        row if row.mask.any() else replace(row, advantages=row.advantages * 0) for row in step.rows
    ]
    with mock.patch.object(driver.ppo_actor, "iter_grad_accum_global_norm", local):
        updates = driver.run_updates(whole.model, step, "token-mean")
    assert whole.error(step, updates, "dapo@batch", own=True) > 1e-2


def test_a_response_without_an_action_token_counts_nowhere_in_the_one_update(whole):
    step = whole.step(micro_rows=2, abstained=(1, 5, 6))
    with mock.patch.object(driver, "make_samples", lambda step, abstains: make_samples(step, False)):
        updates = driver.run_updates(whole.model, step, "balanced:0.6")
        assert whole.error(step, updates, "balanced:0.6") < TOLERANCE
        with pytest.raises(ConfigError, match=r"no action token.*train\.batch_size"):
            driver.run_updates(
                whole.model, whole.step(micro_rows=2, mini_rows=6, abstained=(1, 5, 6)), "balanced:0.6"
            )


make_samples = driver.make_samples


@pytest.mark.parametrize("penalty", [None, 0.5, -0.5])
def test_a_reward_of_nan_abstains_and_shows_in_the_metrics(whole, penalty):
    step = whole.step(groups=((1, 2, 5, 4),), micro_rows=4, abstained=(3,))
    args = driver.make_args(step.case, "seq-mean-token-mean")
    args.reward.stop_properly_penalty_coef = penalty
    samples = make_samples(step, abstains=True)
    samples[3].truncated = torch.tensor(
        [True]
    )  # a penalty of the response without a reward moves no baseline
    for sample, reward in zip(samples, (1.0, 0.0, 0.5, math.nan), strict=True):
        sample.rewards = torch.tensor([reward])
    made = driver.make_maker(step, args, "balanced:0.6").make_experience_batch(samples)
    # weights 0.25, 0.15, 0.09 of lengths 1, 2, 5 (docs), each times 4 responses and its length; baseline 0.5
    found = [experience.advantages[0, -1].item() for experience in made]
    assert found == pytest.approx([0.5 * 0.25 * 4 * 1, -0.5 * 0.15 * 4 * 2, 0.0, 0.0])
    assert [experience.info["abstained"].item() for experience in made] == [0, 0, 0, 1]
    assert [experience.info["reward"].item() for experience in made] == [1.0, 0.0, 0.5, 0.5]
    made[0].rewards -= 1  # as a length penalty does
    assert made[0].info["reward"] == 1


@pytest.mark.parametrize("estimator", ["rloo", "group_norm", "reinforce_baseline", "gae"])
def test_weights_come_after_the_estimator_its_whitening_and_the_kl_in_the_reward(whole, estimator):
    step = whole.step(micro_rows=None, micro_tokens=90, holes=0.3)
    args = driver.make_args(step.case, "seq-mean-token-mean")
    args.algo.advantage.estimator, args.algo.advantage.lambd = estimator, 0.9
    args.algo.advantage.no_std_norm = False
    args.algo.kl.init_coef = 0.2

    def made(mode):
        maker = driver.make_maker(step, args, mode)
        shares = maker.make_experience(maker.split_rollout_samples(make_samples(step, abstains=True)))
        for number, experience in enumerate(shares):
            generator = torch.Generator().manual_seed(number)
            experience.kl = torch.rand(experience.action_mask.shape, generator=generator)
            experience.values = torch.rand(experience.action_mask.shape, generator=generator)
        return maker.compute_advantages_and_returns(shares)

    weights = whole.weights(step, "balanced:0.6")
    for theirs, ours in zip(made("token-mean"), made("balanced:0.6"), strict=True):
        assert torch.equal(theirs.returns, ours.returns)
        for row, i in enumerate(ours.index):
            mask = theirs.action_mask[row]
            expected = theirs.advantages[row] * mask * weights[i] * 12 * mask.sum()
            torch.testing.assert_close(ours.advantages[row], expected, rtol=1e-5, atol=1e-7)


def test_advantages_that_are_not_finite_are_refused(whole):
    step = whole.step(micro_rows=2)
    samples = make_samples(step, abstains=True)
    samples[3].rewards = torch.tensor([math.inf])
    args = driver.make_args(step.case, "seq-mean-token-mean")
    args.reward.clip_range = None
    with pytest.raises(LossModeError, match="have to be finite"):
        driver.make_maker(step, args, "dapo").make_experience_batch(samples)


@pytest.mark.parametrize(
    ("section", "setting", "value", "told"),
    [
        ("actor", "loss_agg_mode", "token-mean", "--actor.loss_agg_mode seq-mean-token-mean"),
        ("train", "batch_size", 5, "train.batch_size=5 has to divide the 12 responses"),
    ],
)
def test_a_setting_that_it_cannot_serve_is_refused_at_start(whole, section, setting, value, told):
    step = whole.step()
    args = driver.make_args(step.case, "seq-mean-token-mean")
    setattr(getattr(args, section), setting, value)
    with pytest.raises(ConfigError, match=told):
        driver.make_maker(step, args, "dapo")


class OtherSignature(openrlhf.models.PolicyLoss):
    def forward(self, log_probs, old_log_probs, advantages, mask):
        raise AssertionError("not reached")


class Extra(openrlhf.models.PolicyLoss):
    def forward(self, log_probs, old_log_probs, advantages, **settings):
        loss, *rest = super().forward(log_probs, old_log_probs, advantages, **settings)
        return loss + 0.05 * (log_probs - old_log_probs).mean(), *rest


@pytest.mark.parametrize(
    ("policy_loss", "error", "told"),
    [
        (OtherSignature, SetupError, r"0\.11\.2.*action_mask"),
        (Extra, LossModeError, "all advantages are 0"),
    ],
)
def test_another_policy_loss_is_refused_at_start(whole, policy_loss, error, told):
    step = whole.step()
    with mock.patch.object(adapter, "PolicyLoss", policy_loss), pytest.raises(error, match=told):
        driver.make_maker(step, driver.make_args(step.case, "seq-mean-token-mean"), "dapo")


def test_what_it_relies_on_is_as_in_0_11_2():
    def parameters(function):
        return list(inspect.signature(function).parameters)

    assert version("openrlhf") == driver.VERSION == "0.11.2"
    assert parameters(RemoteExperienceMaker.compute_advantages_and_returns) == ["self", "experiences"]
    assert parameters(loss_utils._optimizer_step_loss_norm) == ["masks", "dp_group", "dp_size", "gas"]
    forward = ["self", "log_probs", "old_log_probs", "advantages", "action_mask", "rollout_log_probs"]
    assert parameters(openrlhf.models.PolicyLoss.forward) == [
        *forward, "dp_size", "batch_num_tokens", "global_batch_size",
    ]  # fmt: skip
    maker = mock.Mock(args=SimpleNamespace(train=SimpleNamespace(dynamic_batch_enable=False),
                                           rollout=SimpleNamespace(micro_batch_size=1)))  # fmt: skip
    samples = [SimpleNamespace() for _ in range(3)]
    with mock.patch("openrlhf.trainer.ppo_utils.experience_maker.Experience"):
        RemoteExperienceMaker.split_rollout_samples(maker, samples)
    assert [sample.index for sample in samples] == [[0], [1], [2]]  # of which groups are made


def test_the_launcher_replaces_both_trainers_and_leaves_its_options_to_openrlhf(whole, monkeypatch):
    step = whole.step()
    maker = driver.make_maker(step, driver.make_args(step.case, "seq-mean-token-mean"), "token-mean")

    @ray.remote
    class Trainer:
        def __init__(self, given):
            self.experience_maker = given

    monkeypatch.setattr(ppo_trainer, "PPOTrainer", Trainer)
    monkeypatch.setattr(ppo_trainer_async, "TrainingActor", Trainer)
    monkeypatch.setattr(sys, "argv", ["train_openrlhf", "balanced", "--actor.loss_agg_mode", "x"])
    with mock.patch("runpy.run_module") as run_module:
        train_openrlhf.main()
    run_module.assert_called_once_with("openrlhf.cli.train_ppo_ray", run_name="__main__", alter_sys=True)
    assert sys.argv == ["train_openrlhf", "--actor.loss_agg_mode", "x"]
    for replaced in (ppo_trainer.PPOTrainer, ppo_trainer_async.TrainingActor):
        maker.compute_advantages_and_returns = None
        replaced.__ray_metadata__.modified_class(maker)
        assert maker.compute_advantages_and_returns.args[0].spec == "balanced:0.6@prompt"
    monkeypatch.setattr(sys, "argv", ["train_openrlhf", "--actor.loss_agg_mode", "x"])
    with pytest.raises(SystemExit, match="names no mode"):
        train_openrlhf.main()


def test_the_reward_file_of_the_page_runs_in_its_executor():
    page = Path(__file__).parents[3] / "docs" / "guides" / "trainers" / "others.md"
    module = {}
    exec(page.read_text().split("\n## OpenRLHF\n")[1].split("```python")[1].split("```")[0], module)
    executor = SimpleNamespace(reward_func=module["reward_func"])
    fetch = SingleTurnAgentExecutor._fetch_rewards_via_func
    [given] = asyncio.run(fetch(executor, ["Right?\n### True<|im_end|>"], ["Right?"], ["true"]))
    assert given == {"rewards": 1.0, "scores": 1.0, "extra_logs": {"no_reward": 0.0}}
    [given] = asyncio.run(fetch(executor, ["Right?\n### True"], ["Right?"], ["unsure"]))
    assert math.isnan(given["rewards"])
    assert given["extra_logs"] == {"no_reward": 1.0}
