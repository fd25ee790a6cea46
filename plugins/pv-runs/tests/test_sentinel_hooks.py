"""The sentinel's trainer hooks, with a trainer that writes down what it is asked for."""

from __future__ import annotations

import json

import pytest
from fake_trainer import FakeTrainer
from omegaconf import OmegaConf
from validations import validation

from pv_rl.errors import ConfigError
from pv_rl.step_state import StepState
from pv_runs.sentinel import verl_hooks
from pv_runs.sentinel.verl_hooks import STATE_FILE, act, check_settings, observe, restore, save, start

NO_VERDICT = "pv_rl/reward/verdict_missing"


class Workers:
    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def load_checkpoint(self, local_path, del_local_after_load):
        self.calls.append(f"load {local_path.rpartition('global_step_')[2]}")

    def pv_rl_scale_learning_rate(self, factor):
        self.calls.append(f"rate {factor}")
        return [True, True]


def run(tmp_path, **sentinel) -> StepState:
    config = OmegaConf.create(
        {
            "trainer": {
                "default_local_dir": str(tmp_path),
                "resume_mode": "auto",
                "max_actor_ckpt_to_keep": 1,
            },
            "data": {"train_batch_size": 16},
            "actor_rollout_ref": {"rollout": {"n": 8}},
            "sentinel": {
                "agree": 1,
                "within": 1,
                "watch": {"limits": {"missing_verdicts": [None, 0.5]}},
                **sentinel,
            },
        }
    )
    trainer = FakeTrainer(config)
    trainer.use_critic, trainer.actor_rollout_wg = False, Workers(trainer.calls)
    return StepState(trainer=trainer, config=config)


def log(state: StepState, step: int, missing: float) -> dict[str, float]:
    state.step = state.trainer.global_steps = step
    state.metrics = {NO_VERDICT: missing}
    observe(state)
    return state.metrics


def make_checkpoint(state: StepState, tmp_path, step: int) -> None:
    (tmp_path / f"global_step_{step}").mkdir()
    state.step = step
    save(state)


def test_an_alarm_is_logged_and_stops_the_run_at_the_end_of_the_next_step(tmp_path):
    state = run(tmp_path, action="stop")
    start(state)
    assert log(state, 1, 0.9)["pv_rl/sentinel/alarms"] == 1
    state.step = state.trainer.global_steps = 2
    act(state)
    assert state.trainer.calls == ["save 2"]
    assert state.halt_reason.startswith("the sentinel stopped the run. There is no checkpoint from before.")
    assert state.config.trainer.max_actor_ckpt_to_keep == 1
    events = [json.loads(line)["event"] for line in (tmp_path / "sentinel.jsonl").read_text().splitlines()]
    assert events == ["alarm", "stop"]


def test_a_rollback_loads_the_checkpoint_from_before_and_lowers_the_rate_once(tmp_path):
    state = run(tmp_path, action="rollback")
    start(state)
    for step in (1, 2):
        log(state, step, 0.1)
        make_checkpoint(state, tmp_path, step)
    log(state, 3, 0.9)
    state.step = state.trainer.global_steps = 4
    act(state)
    assert state.trainer.calls == ["load 2/actor", "rate 0.5", "save 4"]
    assert state.metrics["pv_rl/sentinel/rolled_back_to"] == 2
    assert state.halt_reason is None
    assert state.own[verl_hooks.OWN].rolled_back


@pytest.mark.parametrize("log_first", [True, False])
def test_a_run_that_goes_on_remembers_whichever_comes_first_the_log_or_the_checkpoint(tmp_path, log_first):
    state = run(tmp_path)
    start(state)
    state.own[verl_hooks.OWN].rolled_back = True
    make_checkpoint(state, tmp_path, 5)
    assert (tmp_path / "global_step_5" / STATE_FILE).is_file()
    again = run(tmp_path)
    again.step = 5
    for hook in (start, restore) if log_first else (restore, start):
        hook(again)
    assert again.own[verl_hooks.OWN].rolled_back


def test_a_checkpoint_knows_the_validation_of_its_step_which_comes_after_it(tmp_path):
    state = run(tmp_path)
    start(state)
    make_checkpoint(state, tmp_path, 5)
    state.saved_step = 5
    state.metrics = {NO_VERDICT: 0.1, **validation(1000, a=0.9)}
    observe(state)
    again = run(tmp_path)
    again.step = 5
    restore(again)
    start(again)
    again.step, again.metrics = 10, {NO_VERDICT: 0.1, **validation(1000, a=0.6)}
    observe(again)
    assert again.metrics["pv_rl/sentinel/alarms"] == 1


def test_an_alarm_at_a_saved_step_is_raised_again_by_a_run_that_goes_on_from_it(tmp_path):
    """Its action would have come at the end of the next step, which that run has not made."""
    state = run(tmp_path)
    start(state)
    state.metrics = {NO_VERDICT: 0.1}
    observe(state)
    make_checkpoint(state, tmp_path, state.step + 1)
    state.saved_step = state.step
    state.metrics = {NO_VERDICT: 0.9}
    observe(state)
    assert state.metrics["pv_rl/sentinel/alarms"] == 1
    again = run(tmp_path)
    again.step = state.step
    restore(again)
    start(again)
    again.step, again.metrics = state.step + 1, {NO_VERDICT: 0.9}
    observe(again)
    assert again.metrics["pv_rl/sentinel/alarms"] == 1


def test_without_a_checkpoint_of_its_own_it_begins_anew(tmp_path):
    state = run(tmp_path)
    state.step = 5
    restore(state)
    start(state)
    assert not state.own[verl_hooks.OWN].rolled_back


def test_settings_that_cannot_be_are_refused_before_anything_starts(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean rollback"):
        check_settings(run(tmp_path, action="rolback"))
