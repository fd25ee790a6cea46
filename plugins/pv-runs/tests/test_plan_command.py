"""What `pv-rl plan` prints and writes."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from plan_configs import config

from pv_rl.errors import DataError
from pv_runs.plan import Assumed, make_plan
from pv_runs.plan.command import show
from pv_runs.plan.ranges import RANGES


def printed(capsys, changes=None, **options):
    show(make_plan(config(changes)), **options)
    return " ".join(capsys.readouterr().out.split())


def test_the_sections_say_what_a_run_takes(capsys):
    out = printed(capsys)
    assert "8.19B parameters (plan.model) on 80 x H100, separate_async: nothing found that stops it" in out
    assert "not a measurement. To be off by a factor of 2 is normal, unless" in out
    assert "training: 32 GPUs = 16 data parallel x 2 sequence parallel (Ulysses)" in out
    assert "rollout: 48 GPUs = 48 replicas of 1 (tensor parallel 1)" in out
    assert "logits 7.0 12,288 x 151,936 x 4" in out
    assert "60 prompts x 8 = 480 responses, 1 update" in out
    assert "300 steps, 18,000 samples, 112M tokens generated" in out
    assert "deepseek-chat: 480 calls a step at most" in out
    assert "max(generation" in out


def test_every_assumption_is_listed_with_its_value(capsys):
    out = printed(capsys, {"plan.train_mfu": 0.41})
    for field in fields(Assumed):
        assert f" {field.name} " in out
    assert "train_mfu 0.41 Share of the GPU's bf16 peak" in out
    assert "usd_per_gpu_hour not given" in out


def test_what_does_not_fit_comes_with_what_makes_it_fit(capsys):
    out = printed(capsys, {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu": 65_536})
    assert "separate_async: 1 found that stops it" in out
    assert "does not fit: training GPU, update" in out
    assert "It fits with: actor_rollout_ref.actor.ppo_max_token_len_per_gpu=12096" in out


def test_that_nothing_helps_is_printed(capsys):
    assert "No change that the plan knows makes it fit" in printed(capsys, {"cluster.gpu.memory_gib": 6})


def test_a_run_without_a_judge_and_of_unknown_length_is_printed(capsys):
    judge = "reward.custom_reward_function.reward_kwargs.judge"
    out = printed(capsys, {judge: None, "trainer.total_training_steps": None})
    assert "none: 0 calls" in out
    assert "The run's length is not known." in out


def test_the_document_holds_the_numbers(tmp_path, capsys):
    target = tmp_path / "plan.json"
    assert f"wrote {target}" in printed(capsys, json_file=str(target))
    told = json.loads(target.read_text())
    assert told["runs"] is True
    assert told["estimate"] == {
        "measured": False,
        "factor": 2.0,
        "ranges": {name: list(pair) for name, pair in RANGES.items()},
    }
    assert told["counts"]["rollouts"] == 480
    assert told["memory"]["fits"] is True
    assert told["memory"]["phases"][0]["gib"] == pytest.approx(
        sum(part["gib"] for part in told["memory"]["phases"][0]["parts"])
    )
    assert told["assumed"]["train_mfu"] == 0.55
    assert told["judge"]["calls"] == 480


def test_a_dash_writes_the_document_alone(capsys):
    show(make_plan(config()), json_file="-")
    assert json.loads(capsys.readouterr().out)["layout"]["total_gpus"] == 80


def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no folder"):
        show(make_plan(config()), json_file=str(tmp_path / "no" / "plan.json"))
