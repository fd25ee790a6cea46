"""Rows without a reward, in verl's own functions: no baseline, no advantage, no update of nothing."""

from __future__ import annotations

from contextvars import copy_context

import numpy as np
import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

import verl.trainer.ppo.ray_trainer as legacy
from verl import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator

from pv_rl.errors import ConfigError
from pv_rl.reward_hooks import broken_reason, reward_numbers
from pv_rl.rewards import RewardInput
from pv_rl.rewards.named import DROP_GROUP, ERROR, VALID
from pv_rl.step_state import StepState, abstaining
from pv_rl.trainer_hooks import run_hooks
from pv_rl.verl_adapter import reward_workers

SCORES = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
GROUPS = ["a", "a", "a", "b", "b", "b"]


def batch(**columns) -> DataProto:
    """Six responses of three tokens, the reward on the last."""
    scores = torch.zeros(6, 3)
    scores[:, -1] = torch.tensor(SCORES)
    mask = torch.ones(6, 3, dtype=torch.int64)
    arrays = {
        "uid": np.array(GROUPS, dtype=object),
        **{name: np.array(column) for name, column in columns.items()},
    }
    data = DataProto.from_dict(
        tensors={"token_level_rewards": scores, "response_mask": mask}, non_tensors=arrays
    )
    data.meta_info["reward_extra_keys"] = list(columns)
    return data


def advantages(data: DataProto, estimator=AdvantageEstimator.GRPO) -> DataProto:
    return legacy.compute_advantage(data, adv_estimator=estimator, norm_adv_by_std_in_grpo=False, config=None)


def test_a_row_abstains_by_itself_or_with_its_group():
    infos = [{VALID: 1.0, DROP_GROUP: 0.0}] * 4 + [
        {VALID: 0.0, DROP_GROUP: 0.0},
        {"timeout": True, "acc": 0.0},
    ]
    assert abstaining(infos, GROUPS) == [
        False,
        False,
        False,
        False,
        True,
        True,
    ]  # the last is a manager's own
    infos[0] = {VALID: 1.0, DROP_GROUP: 1.0}
    assert abstaining(infos, GROUPS) == [True, True, True, False, True, True]


def test_the_baseline_is_over_the_rows_that_have_a_reward():
    data = advantages(batch(**{VALID: [1, 1, 0, 1, 1, 1], DROP_GROUP: [0] * 6}))
    assert data.batch["advantages"][:, 0].tolist() == pytest.approx([0.5, -0.5, 0, -1 / 3, 2 / 3, -1 / 3])
    assert data.batch["response_mask"].sum(dim=-1).tolist() == [3, 3, 0, 3, 3, 3]
    assert data.non_tensor_batch["uid"].tolist() == GROUPS


def test_a_group_that_is_dropped_leaves_whole():
    data = advantages(batch(**{VALID: [0, 1, 1, 1, 1, 1], DROP_GROUP: [1, 0, 0, 0, 0, 0]}))
    assert data.batch["advantages"][:3].abs().sum() == 0
    assert data.batch["response_mask"].sum(dim=-1).tolist() == [0, 0, 0, 3, 3, 3]


@pytest.mark.parametrize("estimator", ["rloo", "opo", "grpo_vectorized"])
def test_other_estimators_compare_with_those_that_are_left_too(estimator):
    kept = advantages(batch(**{VALID: [1, 1, 0, 1, 1, 1], DROP_GROUP: [0] * 6}), estimator)
    fewer = advantages(batch().select_idxs(torch.tensor([0, 1, 3, 4, 5])), estimator)
    rest = [0, 1, 3, 4, 5]
    assert torch.allclose(kept.batch["advantages"][rest], fewer.batch["advantages"])
    assert kept.batch["advantages"][2].abs().sum() == 0


def test_a_reward_that_says_nothing_about_it_is_verls_alone():
    data = batch()
    mask = data.batch["response_mask"]
    data = advantages(data)
    assert data.batch["response_mask"] is mask
    assert data.batch["advantages"][:, 0].tolist() == pytest.approx(
        [1 / 3, -2 / 3, 1 / 3, -1 / 3, 2 / 3, -1 / 3]
    )


class Trainer:
    """What the wrapped updates look at."""

    def __init__(self, path: str) -> None:
        from omegaconf import OmegaConf

        self.config = OmegaConf.create(
            {
                "reward": {"custom_reward_function": {"path": path}},
                "actor_rollout_ref": {"actor": {"loss_agg_mode": "token-mean"}},
            }
        )
        self.global_steps = 3


def test_an_update_of_nothing_is_not_made_and_is_said():
    data = advantages(batch(**{"score": SCORES, VALID: [0] * 6, DROP_GROUP: [0] * 6}))
    output = legacy.RayPPOTrainer._update_actor(Trainer("pkg://pv_rl.rewards.named"), data)
    assert output.meta_info["metrics"] == {"pv_rl/reward/abstained": 1.0, "pv_rl/update_skipped": 1.0}
    assert (
        legacy.RayPPOTrainer._update_critic(Trainer("pkg://pv_rl.rewards.named"), data).meta_info["metrics"]
        == {}
    )


def test_a_reward_that_fails_for_most_rows_is_a_reason_to_stop():
    infos = [{ERROR: 1.0}, {ERROR: 1.0}, {ERROR: 0.0}, {ERROR: 0.0}]
    assert broken_reason(infos) is None
    assert (
        broken_reason(infos[:3])
        == "the reward failed for 2 of 3 rows; correct what the log says of 'failed for a row'"
    )
    assert broken_reason([]) is None


def config(**changes):
    from omegaconf import OmegaConf

    base = {
        "reward": {
            "custom_reward_function": {"path": "pkg://pv_rl.rewards.named", "name": "verdict"},
            "reward_manager": {"source": "register", "name": "naive"},
            "reward_model": {"enable": False, "enable_resource_pool": False},
        },
        "trainer": {"default_local_dir": "checkpoints"},
    }
    return OmegaConf.merge(base, changes)


@pytest.mark.parametrize("point", ["config", "rewards_start"])
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reward": {"reward_manager": {"name": "rate_limited"}}}, "one of naive, dapo"),
        ({"reward": {"reward_manager": {"source": "importlib"}}}, "one of naive, dapo"),
        ({"reward": {"reward_model": {"enable": True}}}, "enable_resource_pool=false"),
        ({"async_training": {}}, "fully_async_policy"),
    ],
)
def test_what_could_train_on_a_made_up_reward_is_refused_at_start(
    changes, text, point, tmp_path, monkeypatch
):
    """`fully_async_policy` comes to the second point alone."""
    monkeypatch.chdir(tmp_path)
    context = copy_context()  # the hooks name the run's folder in one, which later tests must not see
    with pytest.raises(ConfigError, match=text):
        context.run(run_hooks, point, StepState(config=config(**changes)))
    context.run(run_hooks, point, StepState(config=config()))


def test_numbers_are_over_the_rows_that_they_are_about():
    infos = [
        {"score": 1.0, "vetoed": 0.0, "note": "x", VALID: 1.0},
        {"score": 0.0, "vetoed": 1.0, "note": "y", VALID: 0.0},
    ]
    assert reward_numbers(infos, [False, True]) == {
        "pv_rl/reward/abstained": 0.5,
        "pv_rl/reward/score": 1.0,
        "pv_rl/reward/vetoed": 0.5,
    }
    assert reward_numbers([], []) == {}


@pytest.mark.parametrize("known", [{"acc": 0.0, "label_true": 0.0}, {}])
def test_a_row_for_which_the_reward_failed_is_in_neither_class(known):
    infos = [
        {"score": 0.0, **known, ERROR: 1.0},  # the first, when the names of metrics are not known yet
        {"score": 1.0, "acc": 1.0, "label_true": 0.0, ERROR: 0.0},
    ]
    numbers = reward_numbers(infos, [True, False])
    assert numbers["pv_rl/reward/acc"] == 0.5
    assert numbers["pv_rl/reward/acc_label_false"] == 1.0
    assert numbers["pv_rl/reward/error"] == 0.5


def test_a_reward_is_told_the_row_that_verl_knows():
    chat = [{"role": "system", "content": "Check."}, {"role": "user", "content": "A proof."}]
    columns = {
        "raw_prompt": np.array([chat]),  # as verl's agent loop puts a list into an array
        "uid": np.array(["u"]),
        "session_id": np.array([3]),
        "global_steps": np.array([None]),
    }
    row = reward_workers._row(columns)
    assert row == {"uid": "u", "session": 3, "prompt": "Check.\n\nA proof."}
    assert (RewardInput(response="", label=1, **row).prompt, reward_workers._row({})) == (row["prompt"], {})
