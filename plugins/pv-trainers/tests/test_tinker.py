"""tinker-cookbook 0.6.1: its data path and training step against the oracle, and what the adapter refuses."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from drivers import tinker as driver
from grid.oracle import Loss
from stubs import stubbed
from trainer_grid import OURS

from pv_rl.errors import ConfigError, LossModeError, SetupError
from pv_rl.rewards import RewardOutput

with stubbed("blobfile", "pyrage", "termcolor", "tiktoken", "tml_renderers"):
    from tinker_cookbook.rl import data_processing, train
    from tinker_cookbook.rl.rollout_strategy import MinViableGroup
    from tinker_cookbook.rl.types import Env, StepResult, Trajectory, TrajectoryGroup, Transition

    from pv_trainers.tinker import SUMS, weigh, weighted_advantages

TOLERANCE = 5e-6
UNEVEN = ((1, 2, 5, 30), (12, 3), (7, 20, 4))
CUTS = {
    "sub-steps, a tool's turns, masked turns": {"mini_rows": 3, "holes": 0.3, "abstained": (2, 7)},
    "a group masked": {"abstained": (4, 5)},
    "sequence ratios": {"loss": Loss(policy="gspo")},
    "cispo": {"loss": Loss(policy="cispo")},
}


@pytest.mark.parametrize("mode", OURS)
@pytest.mark.parametrize("cut", CUTS)
def test_each_mode_has_the_oracles_gradient(whole, cut, mode):
    step = whole.step(groups=UNEVEN, **CUTS[cut])
    updates = driver.run_updates(whole.model, step, mode)
    assert len(updates) == 9 // (step.case.mini_rows or 9)
    assert whole.error(step, updates, mode) < TOLERANCE


def test_importance_sampling_is_served_too(whole):
    step = whole.step(groups=UNEVEN, loss=Loss(clip_low=1e9, clip_high=1e9, clip_c=1e9))
    updates = driver.run_updates(whole.model, step, "balanced:0.6", loss_fn="importance_sampling")
    assert whole.error(step, updates, "balanced:0.6") < TOLERANCE


def test_its_own_sum_is_the_token_mean_times_the_tokens_and_so_are_weights_by_default(whole):
    step = whole.step(groups=UNEVEN, mini_rows=3, holes=0.3)
    tokens = sum(int(row.mask.sum()) for row in step.rows)
    own = driver.run_updates(whole.model, step, "sum over tokens")
    # three updates: the weights of an update add up to a third of the tokens, on average
    assert (
        whole.error(step, [(rows, 3 * gradient / tokens) for rows, gradient in own], "dapo@batch") < TOLERANCE
    )
    ours = driver.run_updates(whole.model, step, "ba", mean=False)
    assert whole.error(step, [(rows, 3 * gradient / tokens) for rows, gradient in ours], "ba") < TOLERANCE
    same = driver.run_updates(whole.model, step, "dapo@batch", mean=False)
    for (_, first), (_, second) in zip(own, same, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("mode", ["balanced:0.6", "ba"])
def test_groups_that_are_streamed_have_the_weights_of_the_whole_update(whole, mode):
    step = whole.step(groups=((1, 9), (12, 3), (7, 20), (5, 2)))
    stream = train.StreamMinibatchConfig(groups_per_batch=4, num_minibatches=2)
    updates = driver.run_updates(whole.model, step, mode, stream_minibatch_config=stream)
    assert [rows for rows, _ in updates] == [list(range(8))]
    assert whole.error(step, updates, mode) < TOLERANCE
    two = driver.run_updates(whole.model, step, mode, stream_minibatch_config=stream, num_substeps=2)
    assert [rows for rows, _ in two] == [list(range(4)), list(range(4, 8))]
    assert whole.error(step, two, mode) < TOLERANCE


def test_weights_of_a_part_of_the_groups_would_show(whole):
    def part(mode, updates, groups):
        return [weighted_advantages(mode, updates, [group])[0] for group in groups]

    step = whole.step(groups=UNEVEN)
    with mock.patch("pv_trainers.tinker.weighted_advantages", part):
        updates = driver.run_updates(whole.model, step, "balanced:0.6")
    assert whole.error(step, updates, "balanced:0.6") > 1e-2


def test_turns_that_make_two_datums_count_as_one_response(whole):
    step = whole.step(groups=((1, 2, 5),))
    [group] = driver.make_groups(step.rows)
    first, second = (driver.make_trajectory(row).transitions[0] for row in step.rows[:2])
    other = replace(second, ob=driver.tinker.ModelInput.from_ints([9, 9, 9]))  # no extension of the first
    split = replace(group.trajectories_G[1], transitions=[first, other])  # 1 + 2 tokens
    assert len(data_processing.trajectory_to_data(split, 1.0)) == 2
    group = TrajectoryGroup([group.trajectories_G[0], split], [1.0, 0.0], [{}, {}])
    [advantages] = weighted_advantages("grpo", 1, [group])
    assert advantages.tolist() == pytest.approx([0.5 / 2 / 1, -0.5 / 2 / 3])
    [advantages] = weighted_advantages("dapo", None, [group])
    assert advantages.tolist() == pytest.approx([0.5, -0.5])


def test_a_group_of_one_reward_is_a_prompt_unless_the_cookbook_removes_it(whole):
    step = whole.step(groups=((2, 2), (3, 1), (4, 4)))
    groups = driver.make_groups(step.rows)
    groups = [
        replace(group, final_rewards_G=rewards)
        for group, rewards in zip(groups, ([1, 0], [1, 1], [0, 1]), strict=True)
    ]
    with_it = weighted_advantages("dapo", 1, groups)
    without = weighted_advantages("dapo", 1, data_processing.remove_constant_reward_groups(groups))
    assert with_it[0].tolist() == pytest.approx([0.5 / 4 / 3, -0.5 / 4 / 3])
    assert without[0].tolist() == pytest.approx([0.5 / 4 / 2, -0.5 / 4 / 2])


def test_a_trajectory_without_tokens_and_a_step_without_groups_have_no_weights(whole):
    nothing = driver.tinker.ModelInput.empty()
    overflow = Trajectory([Transition(nothing, driver.TokensWithLogprobs([], []), -1.0, True)], nothing)
    [group] = driver.make_groups(whole.step(groups=((2, 3),)).rows)
    group = TrajectoryGroup([*group.trajectories_G, overflow], [0.0, 0.0, 0.0], [{}, {}, {}])
    # its reward of -1 is in the cookbook's baseline; of 9 updates there are two, as there are two datums
    [advantages] = weighted_advantages("grpo", 9, [group])
    assert advantages.tolist() == pytest.approx([2 * 1 / 3 / 2 / 2, 2 * 1 / 3 / 2 / 3, 0.0])
    assert weighted_advantages("grpo", None, []) == []


STREAM = train.StreamMinibatchConfig(groups_per_batch=4, num_minibatches=2)
ASYNC = train.AsyncConfig(max_steps_off_policy=1, groups_per_batch=4)


@pytest.mark.parametrize(
    ("settings", "arguments", "told"),
    [
        ({"loss_fn": "dro"}, {}, "'dro' is not known to be proportional"),
        ({"async_config": ASYNC}, {}, "'stable_reinforce' is not known"),
        ({"kl_penalty_coef": 0.1}, {"mean": True}, "Use mean=False"),
        ({"stream_minibatch_config": STREAM}, {}, "use mean=True"),
        ({"stream_minibatch_config": STREAM}, {"mean": True, "mode": "dapo@batch"}, "scope prompt"),
        (
            {"stream_minibatch_config": STREAM, "remove_constant_reward_groups": True},
            {"mean": True},
            "remove_constant_reward_groups=False",
        ),
    ],
)
def test_a_setting_that_it_cannot_serve_is_refused_at_start(settings, arguments, told):
    with driver.cookbook(), pytest.raises(ConfigError, match=told):
        weigh(driver.make_config(**settings), **{"mode": "balanced"} | arguments)


def test_a_reward_that_is_not_a_number_is_refused(whole):
    groups = driver.make_groups(whole.step(groups=((2, 2),)).rows)
    groups = [replace(groups[0], final_rewards_G=[float("nan"), 1.0])]
    with pytest.raises(LossModeError, match="have to be finite"):
        weighted_advantages("dapo", None, groups)


def test_the_mode_named_last_is_the_one_that_trains():
    with driver.cookbook():
        weigh(driver.make_config(), "dapo")
        weigh(driver.make_config(), "balanced", mean=True)
        assert train.compute_advantages.args == ("balanced", 1)
        with pytest.raises(LossModeError, match="names no mode"):
            weigh(driver.make_config(), "balance")


def test_another_compute_advantages_is_refused():
    def other(trajectory_groups_P, baseline): ...

    replaced = mock.patch.object(train, "compute_advantages", other)
    with driver.cookbook(), replaced, pytest.raises(SetupError, match=r"tinker-cookbook 0\.6\.1"):
        weigh(driver.make_config(), "dapo")


def test_what_it_relies_on_is_as_in_0_6_1():
    assert version("tinker-cookbook") == driver.VERSION == "0.6.1"
    assert train.compute_advantages is data_processing.compute_advantages
    assert "compute_advantages(trajectory_groups_P)" in inspect.getsource(train.prepare_minibatch)
    parameters = list(inspect.signature(data_processing.trajectory_to_data).parameters)
    assert parameters == ["traj", "traj_advantage", "include_provenance"]
    assert driver.make_config().training_loss_fn() in SUMS


def test_a_response_without_a_reward_leaves_its_group_as_the_page_says():
    page = Path(__file__).parents[3] / "docs" / "guides" / "trainers" / "others.md"
    module = {}
    exec(page.read_text().split("\n## tinker-cookbook\n")[1].split("```python")[2].split("```")[0], module)
    assert asyncio.run(module["score"]("### True", True)) == 1.0
    nothing = driver.tinker.ModelInput.from_ints([1])

    class Judged(Env):
        def __init__(self, valid):
            self.valid = valid

        async def initial_observation(self):
            return nothing, []

        async def step(self, action, *, extra=None):
            output = RewardOutput(score=float(self.valid), valid=self.valid)
            module["reward"] = SimpleNamespace(score=mock.AsyncMock(return_value=output))
            return StepResult(await module["score"]("", True), True, nothing, [])

    builder = SimpleNamespace(
        make_envs=mock.AsyncMock(return_value=[Judged(number != 2) for number in range(4)])
    )
    policy = mock.AsyncMock(return_value=driver.TokensWithLogprobs([5], [-1.0]))
    result = asyncio.run(MinViableGroup(max_retries=0).execute(builder, policy))
    assert [trajectory.transitions[0].reward for trajectory in result.trajectories] == [1.0, 1.0, 1.0]
    assert [error.error_type for error in result.errors] == ["JudgeError"]
