"""What the wrapped functions of verl's trainers do around the hooks: skip, save once, halt, end."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
from fake_trainer import FakeTrainer
from omegaconf import OmegaConf

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

from pv_rl import stop_file
from pv_rl.errors import RunHalted
from pv_rl.trainer_hooks import state_of
from pv_rl.verl_adapter import start, trainers
from pv_rl.verl_adapter.trainers import patch_legacy_trainer, patch_v1_trainer


@pytest.fixture
def points(monkeypatch):
    """The points that are reached; `at[point]` is called there with the state."""
    reached: list[str] = []
    at: dict[str, Callable] = {}

    def run(point, state):
        reached.append(point)
        at.get(point, lambda state: None)(state)

    monkeypatch.setattr(trainers, "run_hooks", run)
    monkeypatch.setattr("pv_rl.trainer_hooks.run_hooks", run)
    return types.SimpleNamespace(reached=reached, at=at)


def config(tmp_path):
    return OmegaConf.create({"trainer": {"default_local_dir": str(tmp_path)}, "actor_rollout_ref": {}})


def v1(tmp_path, compute_step=FakeTrainer.step) -> FakeTrainer:
    class PPOTrainer(FakeTrainer):
        step = compute_step

        def fit(self):
            self.step({}, {})
            self._save_checkpoint()
            self.calls.append("logged")

    patch_v1_trainer(types.SimpleNamespace(PPOTrainer=PPOTrainer, tq=None))  # pyright: ignore[reportArgumentType]
    return PPOTrainer(config(tmp_path))


def test_a_step_that_a_hook_halts_is_saved_once_logged_and_reported_at_the_end(tmp_path, points):
    trainer = v1(tmp_path)
    points.at["step_end"] = lambda state: (state.halt("too hot"), state.halt("too late"))
    with pytest.raises(RunHalted, match=r"too hot\. A checkpoint of step 1 was written; resume from there"):
        trainer.fit()
    assert trainer.calls == ["step", "save 1", "logged"]
    assert trainer.total_training_steps == 1
    assert points.reached == ["step_end", "checkpoint_saved", "fit_end"]


def test_a_run_that_is_asked_to_stop_ends_after_its_step_without_an_error(tmp_path, points):
    trainer = v1(tmp_path)
    stop_file.ask_to_stop(tmp_path)
    trainer.fit()
    assert trainer.calls == ["step", "save 1", "logged"]
    assert not stop_file.asked_to_stop(tmp_path)


def test_the_hooks_of_the_end_run_after_an_error_too(tmp_path, points):
    trainer = v1(tmp_path)
    points.at["step_end"] = lambda state: 1 / 0
    with pytest.raises(ZeroDivisionError):
        trainer.fit()
    assert points.reached == ["step_end", "fit_end"]
    assert state_of().ended


def test_a_hook_may_leave_out_an_update_and_the_window_is_that_of_the_round(tmp_path, points):
    def two_rounds(self, metrics, timing_raw):
        batch = types.SimpleNamespace(keys=[], partition_id="train", fields=[], tags=[])
        for _ in range(2):
            batch = self._compute_advantage(batch, metrics)
            batch = self._update_critic(batch, metrics)
            batch = self._update_actor(batch, metrics)

    trainer, seen = v1(tmp_path, two_rounds), []
    points.at["before_update"] = lambda state: state.part == "critic" and setattr(state, "skip_update", True)
    points.at["after_advantage"] = lambda state: seen.append(state.waited)
    trainer.step({}, {})
    assert trainer.calls == ["update_actor", "update_actor"]
    (begin, end), (second_begin, second_end) = seen
    assert begin <= end <= second_begin <= second_end


def test_the_legacy_trainer_saves_and_ends_in_its_update_with_the_metrics_of_the_hooks(tmp_path, points):
    class RayPPOTrainer(FakeTrainer):
        def _update_actor(self, batch):
            return types.SimpleNamespace(meta_info={"metrics": self.metrics})

    module = types.SimpleNamespace(RayPPOTrainer=RayPPOTrainer, compute_advantage=None)
    patch_legacy_trainer(module)  # pyright: ignore[reportArgumentType]
    trainer = RayPPOTrainer(config(tmp_path))
    trainer.metrics = {}
    points.at["after_advantage"] = lambda state: state.metrics.update(theirs=2.0)
    trainer._update_actor(object())
    assert trainer.metrics == {"theirs": 2.0}
    assert points.reached == ["after_advantage", "before_update", "step_end"]
    points.at["step_end"] = lambda state: state.halt("too hot")
    with pytest.raises(RunHalted, match="too hot"):
        trainer._update_actor(object())
    assert trainer.calls == ["save 1"]


def test_the_log_of_a_new_run_in_the_same_process_has_a_state_of_its_own(points):
    class Tracking:
        def __init__(self, project_name, experiment_name, default_backend, config):
            pass

        def log(self, data, step, backend=None):
            self.logged = data

    start.patch_tracking(types.SimpleNamespace(Tracking=Tracking))  # pyright: ignore[reportArgumentType]
    points.at["log_opened"] = lambda state: state.own.setdefault("theirs", []).append(state.config)
    points.at["log"] = lambda state: state.metrics.update(at=state.step)
    state_of(new=True)
    for name in ("a", "b"):
        tracking = Tracking("project", name, "console", {"name": name})
        line = {"x": 1.0}
        tracking.log(line, 7)
        assert tracking.logged == {"x": 1.0, "at": 7}
        assert line == {"x": 1.0}
    assert state_of().own["theirs"] == [{"name": "b"}]

    state = state_of()
    state.trainer, state.metrics = object(), {"of the step": 1.0}
    other = Tracking("project", "of the user", "console", {})
    other.log({"x": 2.0}, 9)
    assert other.logged == {"x": 2.0}
    assert state_of() is state
    assert state.metrics == {"of the step": 1.0}

    state.ended = True
    Tracking("project", "c", "console", {"name": "c"})
    assert state_of() is not state
