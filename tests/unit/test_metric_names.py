"""The catalogue of metric names: what is computed is in it, and each name is there once."""

from __future__ import annotations

from importlib.resources import files

import pytest
from metric_catalogue import CATALOGUE, describe

import pv_rl.metric_names
from pv_rl.losses import resolve_mode
from pv_rl.metric_names import PREFIX
from pv_rl.reward_hooks import reward_numbers
from pv_rl.rewards import build_reward
from pv_runs import metric_names
from pv_runs.held_out_metrics import held_out_metrics
from pv_runs.weight_shares import diagnose


def test_a_name_is_there_once_with_a_meaning():
    lines = (files("pv_runs") / "metrics.csv").read_text(encoding="utf-8").splitlines()
    assert len(CATALOGUE) == len(lines) - 1
    assert all(one["meaning"] for one in CATALOGUE.values())


def test_every_name_that_the_code_uses_is_described():
    families = {"PREFIX", "REWARD", "JUDGE", "HELD_OUT", "SENTINEL", "WEIGHT_SHARE", "RULE"}
    used = {
        value
        for name, value in (vars(metric_names) | vars(pv_rl.metric_names)).items()
        if name.isupper() and isinstance(value, str) and name not in families
    }
    parts = ("", "actor/", "critic/")
    assert [name for name in used if not any(describe(part + name) for part in parts)] == []


@pytest.mark.parametrize("name", ["grade", "first_error"])
def test_every_number_of_a_verdict_format_is_described(name):
    numbers = reward_numbers([dict.fromkeys(build_reward(name).metric_names, 1.0)], [False])
    assert [one for one in numbers if (describe(one) or {"name": "*"})["name"].endswith("*")] == []


@pytest.mark.parametrize("spec", ["balanced", "vl_norm:0.75:10", "dr_grpo:10@batch"])
def test_every_number_of_the_weights_is_described(spec):
    advantages = [1.0, -1.0, 0.0, float("nan")]
    numbers = diagnose(resolve_mode(spec), [1, 2, 3, 4], "aabb", advantages, [True, False, None, True])
    assert [name for name in numbers if describe(PREFIX + name) is None] == []


def test_no_name_is_a_folder_of_another():
    """MLflow's file store keeps a metric as a file. verl's own names are in test_real_runs."""
    verdicts = [True, False, None, True]
    weights = diagnose(
        resolve_mode("balanced"), [1, 2, 3, 4], "aabb", [1.0, -1.0, 0.0, float("nan")], verdicts
    )
    infos = [dict.fromkeys(("acc", "label_true", "verdict_true", "verdict_missing", "vetoed"), 1.0)] * 2
    held_out = held_out_metrics(["a/right", "b/wrong"], {name: [1.0, 0.0] for name in infos[0]}, [3, 4])
    names = (
        {name for name in CATALOGUE if "*" not in name} | {PREFIX + name for name in weights} | set(held_out)
    )
    names |= set(reward_numbers(infos, [False, False]))
    assert [name for name in names if any(other.startswith(name + "/") for other in names)] == []


def test_the_most_exact_entry_describes_a_name():
    infos = [{"score": 1.0, "acc": 1.0, "label_true": 1.0, "rule_ngram_loop": 0.0, "of_their_own": 2.0}]
    found = {name: describe(name) for name in reward_numbers(infos, [False])}
    assert found["pv_rl/reward/acc"]["unit"] == "share of responses"
    assert found["pv_rl/reward/acc_label_true"]["unit"] == "share of right proofs"
    assert found["pv_rl/reward/rule_ngram_loop"]["name"] == "pv_rl/reward/rule_*"
    assert found["pv_rl/reward/of_their_own"]["name"] == "pv_rl/reward/*"
    assert describe("pv_rl/unheard_of") is None
    assert describe("actor/grad_norm") is None
