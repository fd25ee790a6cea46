"""`pv-rl lab run` without verl: what is planned, refused, trained, gone on with, and shown.

verl is a small script here, started in the same way; the real one is in examples/lab/tests/test_lab_trained_runs.py.
"""

from __future__ import annotations

import io
import json
import os
import re
import threading
import time
from collections import namedtuple
from pathlib import Path

import pytest

pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from rich.console import Console

from pv_lab import environment
from pv_lab.runs import LabSettings, run_lab, running
from pv_lab.runs.display import Display
from pv_lab.runs.plan import compose_run, plan_runs, save_config
from pv_rl.errors import ConfigError, LossModeError, SetupError
from pv_rl.stop_file import ask_to_stop
from pv_runs.run_folder import locked
from pv_runs.run_record import Record, read_record, write_record
from pv_runs.train.progress import Progress

FAKE = """
import json, os, time
from pathlib import Path
import yaml

run = Path(os.environ["PV_RL_RUN_DIR"])
trainer = yaml.load((run / ".hydra" / "config.yaml").read_text(), yaml.CSafeLoader)["trainer"]
checkpoints = run / "checkpoints"
checkpoints.mkdir(exist_ok=True)
saved = checkpoints / "latest_checkpointed_iteration.txt"
first = int(saved.read_text()) + 1 if saved.exists() else 1
if os.environ.get("FAKE_FAILS") in (trainer["experiment_name"], "all"):
    raise RuntimeError("no luck today")
with Path(os.environ["VERL_FILE_LOGGER_PATH"]).open("w", buffering=1) as file:
    for step in range(first, trainer["total_training_steps"] + 1):
        time.sleep(float(os.environ.get("FAKE_STEP_S", 0)))
        data = {"critic/score/mean": 0.5, "response_length/mean": 20.0}
        file.write(json.dumps({"step": step, "data": data}) + "\\n")
        asked = (checkpoints / "pv_rl_stop").exists()
        if asked or step % trainer["save_freq"] == 0:
            (checkpoints / f"global_step_{step}").mkdir(exist_ok=True)
            saved.write_text(str(step))
        if asked:
            break
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Settings of a lab in `tmp_path` that a script trains."""
    (tmp_path / "fake_verl.py").write_text(FAKE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # the checks before a run look for its module
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)

    def make(**settings):
        fake = ("launch.module=fake_verl",)
        overrides = (*fake, *settings.pop("overrides", ()))
        return LabSettings(
            **{"out": tmp_path / "lab", "seeds": 1, "steps": 2} | settings, overrides=overrides
        )

    return make


def go(settings: LabSettings) -> str:
    """What it prints where there is no terminal."""
    console = Console(file=io.StringIO(), soft_wrap=True)
    run_lab(settings, console)
    return console.file.getvalue()


def attempts(settings: LabSettings) -> dict[str, tuple[str, int]]:
    return {
        run.folder.name: (record.state, record.attempts)
        for run in plan_runs(settings)
        if run.state != "new"
        for record in [read_record(run.folder)]
    }


def pretend(settings: LabSettings, **record) -> Path:
    """The first run of a lab as if it had been trained: its folder."""
    run = plan_runs(settings)[0]
    save_config(settings, run, compose_run(settings, run))
    (run.folder / "metrics.jsonl").write_text('{"step": 1, "data": {}}\n')
    write_record(
        run.folder, Record(**{"state": "finished", "attempts": 1, "cwd": str(settings.out.parent)} | record)
    )
    return run.folder


def steps_of(path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_a_lab_is_every_weighting_with_every_seed_seed_by_seed(tmp_path):
    settings = LabSettings(out=tmp_path, modes=("grpo", "balanced", "dapo@batch"), seeds=2, first_seed=4)
    assert [(run.mode, run.seed, run.folder.name) for run in plan_runs(settings)] == [
        ("grpo", 4, "grpo-seed-4"),
        ("balanced:0.6", 4, "balanced-0.6-seed-4"),
        ("dapo@batch", 4, "dapo-batch-seed-4"),
        ("grpo", 5, "grpo-seed-5"),
        ("balanced:0.6", 5, "balanced-0.6-seed-5"),
        ("dapo@batch", 5, "dapo-batch-seed-5"),
    ]


@pytest.mark.parametrize(("steps", "interval"), [(1, 1), (2, 1), (20, 3), (30, 5), (31, 5), (60, 10)])
def test_a_run_validates_and_saves_about_six_times(steps, interval):
    assert LabSettings(steps=steps).interval == interval


def test_a_run_is_the_lab_on_a_cpu_with_its_weighting_seed_and_steps(tmp_path):
    settings = LabSettings(out=tmp_path, modes=("balanced:0.3",), first_seed=7)
    config = compose_run(settings, plan_runs(settings)[0])
    trainer = config.trainer
    assert (trainer.total_training_steps, trainer.test_freq, trainer.save_freq) == (24, 4, 4)
    assert (config.run, config.seed, config.data.seed) == ("lab", 7, 7)
    assert config.actor_rollout_ref.actor.loss_agg_mode == "balanced:0.3"
    assert config.actor_rollout_ref.rollout.name == "pv_cpu"
    assert trainer.experiment_name == "lab-balanced-0.3-seed-7"


def test_the_users_overrides_win_and_another_cluster_can_be_named(tmp_path):
    settings = LabSettings(out=tmp_path, overrides=("trainer.save_freq=7", "cluster=gpu1"))
    config = compose_run(settings, plan_runs(settings)[0])
    assert config.trainer.save_freq == 7
    assert config.actor_rollout_ref.rollout.name == "vllm"


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"steps": 0}, ConfigError, "--steps is 0"),
        ({"seeds": 0}, ConfigError, "--seeds is 0"),
        ({"first_seed": -1}, ConfigError, "--first-seed is -1"),
        ({"modes": ()}, ConfigError, "no weighting is named"),
        ({"modes": ("grop",)}, LossModeError, "Did you mean grpo"),
        (
            {"modes": ("balanced", "balanced:0.60")},
            ConfigError,
            "balanced and balanced:0.60 are the same weighting",
        ),
        ({"overrides": ("seed=3",)}, ConfigError, "say --seeds and --first-seed"),
        ({"overrides": ("++recipe.eta=0.3",)}, ConfigError, "sets recipe itself; say --modes"),
        ({"overrides": ("trainer.total_training_steps=9",)}, ConfigError, "say --steps"),
        ({"overrides": ("--multirun",)}, ConfigError, "is an option that pv-rl lab run does not have"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, error, text):
    with pytest.raises(error, match=text):
        LabSettings(**given)


def test_a_misspelt_override_is_refused_before_anything_starts(lab):
    settings = lab(overrides=("trainer.tset_freq=1",))
    with pytest.raises(ConfigError, match="tset_freq"):
        go(settings)
    assert not settings.out.exists()


def test_a_full_disk_is_refused_before_anything_starts(lab, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda _: usage(100e6))
    settings = lab(modes=("grpo", "dapo"))
    with pytest.raises(SetupError, match=r"100 MB free, and 2 runs may need 120 MB.*--out"):
        go(settings)
    assert not settings.out.exists()


def test_a_missing_package_is_named(lab, monkeypatch):
    monkeypatch.setattr(environment, "NEEDS", ("verl", "no_such_package"))
    with pytest.raises(SetupError, match="the lab needs no_such_package"):
        go(lab())


def test_the_same_command_again_trains_nothing_and_more_seeds_train_only_those(lab):
    printed = go(lab(modes=("grpo", "dapo")))
    assert "run 1 of 2: grpo, seed 0" in printed
    assert "grpo, seed 0  step 2 of 2  reward 0.500  length 20" in printed
    assert "run 2 of 2: dapo, seed 0: finished." in printed
    assert "2 runs are finished, 2 trained now. Side by side: pv-rl lab report" in printed
    once = {"grpo-seed-0": ("finished", 1), "dapo-seed-0": ("finished", 1)}
    assert attempts(lab(modes=("grpo", "dapo"))) == once

    assert "2 runs are finished, nothing to train" in go(lab(modes=("grpo", "dapo")))
    assert attempts(lab(modes=("grpo", "dapo"))) == once

    assert "1 trained now" in go(lab(modes=("grpo",), seeds=2))
    assert attempts(lab(modes=("grpo",), seeds=2)) == {
        "grpo-seed-0": ("finished", 1),
        "grpo-seed-1": ("finished", 1),
    }


def test_a_run_that_was_stopped_goes_on_from_its_checkpoint(lab, monkeypatch):
    monkeypatch.setenv("FAKE_STEP_S", "0.3")
    settings = lab(modes=("grpo", "dapo"), steps=8)
    run = plan_runs(settings)[0].folder

    def stop_after_two_steps():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (run / "metrics.jsonl").exists() and len(steps_of(run / "metrics.jsonl")) >= 2:
                ask_to_stop(run / "checkpoints")
                return
            time.sleep(0.05)

    stopper = threading.Thread(target=stop_after_two_steps)
    stopper.start()
    printed = go(settings)
    stopper.join()
    assert "grpo-seed-0 was asked to stop: the same command goes on" in printed
    assert attempts(settings) == {"grpo-seed-0": ("stopped", 1)}  # and no other run began
    first = steps_of(run / "metrics.jsonl")
    assert 2 <= first[-1] < 8

    monkeypatch.setenv("FAKE_STEP_S", "0")
    assert "grpo, seed 0, goes on" in go(settings)
    assert first + steps_of(run / "metrics-2.jsonl") == list(range(1, 9))
    assert attempts(settings) == {"grpo-seed-0": ("finished", 2), "dapo-seed-0": ("finished", 1)}


def test_ctrl_c_ends_the_lab_and_says_how_to_go_on(lab, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "start", stopped)
    console = Console(file=io.StringIO(), soft_wrap=True)
    with pytest.raises(KeyboardInterrupt):
        run_lab(lab(), console)
    assert "grpo-seed-0: the same command goes on from the last checkpoint" in console.file.getvalue()


def test_a_run_that_fails_late_is_named_the_others_go_on_and_it_is_tried_again(lab, monkeypatch):
    settings = lab(modes=("grpo", "dapo"))
    pretend(settings, state="failed")
    monkeypatch.setenv("FAKE_FAILS", "lab-grpo-seed-0")
    with pytest.raises(
        SetupError, match=r"1 of 2 runs failed; the same command tries them again(.|\n)*no luck today"
    ):
        go(settings)
    assert attempts(settings) == {"grpo-seed-0": ("failed", 2), "dapo-seed-0": ("finished", 1)}
    monkeypatch.delenv("FAKE_FAILS")
    go(settings)
    assert attempts(settings)["grpo-seed-0"] == ("finished", 3)


def test_a_run_that_fails_before_it_logs_anything_ends_the_lab(lab, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "all")
    settings = lab(modes=("grpo", "dapo"))
    with pytest.raises(SetupError, match="1 of 2 runs failed"):
        go(settings)
    assert attempts(settings) == {"grpo-seed-0": ("failed", 1)}


def test_a_folder_with_runs_of_other_settings_is_refused_with_what_differs(lab):
    pretend(lab(modes=("grpo",)))
    other = lab(modes=("dapo",), steps=3, overrides=("algorithm.use_kl_in_reward=true",))
    with pytest.raises(ConfigError) as caught:
        go(other)
    text = str(caught.value)
    assert "holds runs of other settings, grpo-seed-0 for example" in text
    assert "trainer.total_training_steps is 2 there and 3 here" in text
    assert "algorithm.use_kl_in_reward is False there and True here" in text
    assert "name another --out" in text
    assert attempts(other) == {}


def test_what_a_resume_by_hand_has_changed_counts_as_a_setting(lab):
    settings = lab(modes=("grpo",))
    pretend(settings, overrides=("trainer.total_training_steps=4",))
    with pytest.raises(ConfigError, match="total_training_steps is 4 there and 2 here"):
        go(settings)


def test_a_folder_that_is_a_run_or_a_file_is_refused(lab, tmp_path):
    pretend(lab(modes=("grpo",)))
    with pytest.raises(ConfigError, match="is the folder of one run"):
        go(lab(out=tmp_path / "lab" / "grpo-seed-0"))
    with pytest.raises(ConfigError, match="is a file; name a folder"):
        go(lab(out=tmp_path / "fake_verl.py"))


def test_two_labs_do_not_share_a_folder(lab):
    settings = lab(modes=("grpo",))
    settings.out.mkdir()
    with locked(settings.out), pytest.raises(SetupError, match="is running"):
        go(settings)
    assert attempts(settings) == {}


def test_a_terminal_shows_one_bar_with_runs_step_reward_length_and_time_left(tmp_path, monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    display = Display(console, runs=9, ended=3, steps=30)
    clock = iter(range(0, 1000, 40))
    monkeypatch.setattr(display._bar, "get_time", lambda: next(clock))
    display.begin(plan_runs(LabSettings(out=tmp_path))[0])
    metrics = tmp_path / "metrics.jsonl"
    lines = [
        {"step": 0, "data": {"val-core/lab/right/acc/mean@1": 0.9}},
        *({"step": n, "data": {"critic/score/mean": 0.625, "response_length/mean": 21.4}} for n in (1, 2)),
    ]
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    Progress(metrics, 30, display.run_console).look()  # the lines of pv-rl train, as it prints them
    display.run_console.print("stopping after this step")
    shown = Console(file=io.StringIO(), width=120)
    shown.print(display._bar.get_renderable())
    text = shown.file.getvalue()
    assert "3 of 9 runs" in text
    assert re.search(r"[0-9]+:[0-9]{2}:[0-9]{2} +[0-9]+:[0-9]{2}:[0-9]{2}", text)  # elapsed, and left
    assert "grpo, seed 0   step 2 of 30  reward 0.625  length 21" in text
    assert console.file.getvalue().strip() == "stopping after this step"  # steps are in the bar alone
