"""Where the loggers of a run write: apart from other runs, and not in the working directory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

from fork_server import run_fresh
from omegaconf import OmegaConf

from pv_runs.run_record import Record, next_record
from pv_runs.train.loggers import logger_environment, logger_overrides, prepare_loggers

ALL = ("tensorboard", "wandb", "mlflow", "swanlab")
OWN = ("TENSORBOARD_DIR", "WANDB_DIR", "MLFLOW_TRACKING_URI", "SWANLAB_LOG_DIR")
LOG = """
import json, os
from verl.utils.tracking import Tracking, ValidationGenerationsLogger

names, steps, metrics = json.loads(os.environ["LOGGED"])
os.environ |= {"WANDB_MODE": "offline", "SWANLAB_MODE": "local"}
tracking = Tracking("project", "name", names, config={"trainer": {"steps": steps}})
for step in steps:
    tracking.log(metrics, step=step)
ValidationGenerationsLogger("project", "name").log(names, [("in", "out", 1.0)], steps[-1])
tracking.finish()
"""


@pytest.fixture(autouse=True)
def without_variables_of_loggers(monkeypatch):
    for name in (
        *OWN,
        "WANDB_RUN_ID",
        "WANDB_RUN_GROUP",
        "WANDB_RESUME",
        "SWANLAB_RUN_ID",
        "MLFLOW_RUN_CONTEXT",
    ):
        monkeypatch.delenv(name, raising=False)


def config(*loggers: str):
    trainer = {
        "logger": ["console", "file", *loggers],
        "experiment_name": "lab-seed-0",
        "project_name": "project",
    }
    return OmegaConf.create({"trainer": trainer, "launch": {"env": {}}})


def record(attempt: int = 1, logs_as: int | None = None) -> Record:
    one = replace(next_record(None), attempts=attempt, id="0a1b2c3d")
    return replace(one, history=({"attempt": attempt, "logs_as": logs_as or attempt},))


def names(folder: Path, *loggers: str, attempt: int = 1, logs_as: int | None = None) -> tuple[str, ...]:
    return logger_overrides(folder, config(*loggers), record(attempt, logs_as))


def test_each_logger_writes_to_the_folder_of_the_run(tmp_path):
    found = logger_environment(tmp_path, config(*ALL), record())
    assert [found[name] for name in OWN] == [
        f"{tmp_path}/tensorboard",
        str(tmp_path),
        f"sqlite:///{tmp_path}/mlflow.db",
        f"{tmp_path}/swanlog",
    ]
    assert logger_environment(tmp_path, config(), record()) == {}


def test_a_variable_of_the_user_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORBOARD_DIR", "mine")
    given = config(*ALL)
    given.launch.env = {"WANDB_DIR": "elsewhere"}
    found = logger_environment(tmp_path, given, record())
    assert not {"TENSORBOARD_DIR", "WANDB_DIR"} & set(found)
    assert "MLFLOW_TRACKING_URI" in found


def test_a_resume_continues_in_its_loggers_or_is_another_run_of_the_same_group(tmp_path):
    (tmp_path / ".hydra").mkdir()
    OmegaConf.save(config(*ALL), tmp_path / ".hydra/config.yaml")
    resumed = config(*ALL)
    resumed.trainer.experiment_name = "lab-balanced-0.3-seed-0"  # which has another eta in it
    first, continued, other = (
        logger_environment(tmp_path, given, record(*which))
        for given, which in ((config(*ALL), (1,)), (config(*ALL), (2, 1)), (resumed, (2, 2)))
    )
    for name in ("TENSORBOARD_DIR", "WANDB_RUN_ID", "SWANLAB_RUN_ID"):
        assert first[name] == continued[name] != other[name]
    assert first["WANDB_RUN_GROUP"] == other["WANDB_RUN_GROUP"]
    tags = [json.loads(one["MLFLOW_RUN_CONTEXT"]) for one in (first, other)]
    assert [(one["pv_rl.run"], one["pv_rl.attempt"]) for one in tags] == [
        ("0a1b2c3d", "1"),
        ("0a1b2c3d", "2"),
    ]


def test_runs_of_a_sweep_have_names_of_their_own(tmp_path):
    sweep = tmp_path / "runs/2026-11-29"
    for job in ("0", "1"):
        (sweep / job).mkdir(parents=True)
    (sweep / "multirun.yaml").touch()
    assert names(sweep / "1", "wandb") == ("trainer.experiment_name='lab-seed-0-2026-11-29-1'",)
    assert names(sweep / "1", "wandb", attempt=3) == (
        "trainer.experiment_name='lab-seed-0-2026-11-29-1-attempt-3'",
    )
    assert names(sweep / "1", "wandb", attempt=3, logs_as=1) == names(sweep / "1", "wandb")
    assert names(sweep / "1", "tensorboard") == ()  # which shows folders and no names


def test_the_name_that_the_user_gave_to_a_run_is_kept(tmp_path):
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/overrides.yaml").write_text("- trainer.experiment_name=lab-seed-0\n")
    assert names(tmp_path, "wandb") == ()


def track(run: Path, cwd: Path, logger: str, attempt: int, steps: list[int], metrics: dict) -> None:
    """What verl does with a logger, in a process of its own."""
    run.mkdir(exist_ok=True)
    environment = logger_environment(run, config(logger), record(attempt))
    prepare_loggers(run, config(logger), environment)
    done = run_fresh(LOG, cwd=cwd, LOGGED=json.dumps([[logger], steps, metrics]), **environment)
    assert done.returncode == 0, done.stdout + done.stderr


def read_tensorboard(folder: Path) -> dict[str, list[int]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [one.step for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def read_mlflow(folder: Path) -> list[dict[str, float]]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'project'")
    return [one.data.metrics for one in client.search_runs([experiment.experiment_id])]


@pytest.mark.paths  # 20 to 40 s each; TensorBoard is in test_real_runs too
@pytest.mark.parametrize("logger", ALL)
def test_two_runs_and_a_resumed_one_are_apart_and_nothing_is_in_the_working_directory(tmp_path, logger):
    pytest.importorskip(logger)
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    metrics = {
        "pv_rl/reward/acc": 0.5,
        "pv_rl/reward/acc_label_true": 0.25,
        "val-core/a/right/acc/mean@1": 1.0,
    }
    a, b = tmp_path / "a", tmp_path / "it's b"
    for run, attempt, steps in ((a, 1, [1, 2]), (b, 1, [1, 2]), (a, 2, [2, 3])):
        track(run, cwd, logger, attempt, steps, metrics)
    assert list(cwd.iterdir()) == []
    if logger == "tensorboard":
        for folder, steps in (("tensorboard", [1, 2]), ("tensorboard/attempt-2", [2, 3])):
            assert read_tensorboard(a / folder) == dict.fromkeys(metrics, steps)
    elif logger == "mlflow":
        assert [[len(found) for found in read_mlflow(run)] for run in (a, b)] == [[3, 3], [3]]
    else:
        pattern = {"wandb": "wandb/offline-run-*", "swanlab": "swanlog/run-*"}[logger]
        assert [len(list(run.glob(pattern))) for run in (a, b)] == [2, 1]
