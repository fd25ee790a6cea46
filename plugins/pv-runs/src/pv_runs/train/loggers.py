"""Logger environment: a place for each run in TensorBoard, wandb, MLflow and SwanLab, outside the working directory.

verl's `Tracking` (verl/utils/tracking.py:62) takes folders and ids from the environment, and the name of a run from
`trainer.experiment_name`, which is the same in all runs of a sweep over eta.

| logger | in the run's folder | a resume that repeats no step and changes no setting |
|---|---|---|
| tensorboard | tensorboard/ | continues it; any other one writes to tensorboard/attempt-N/ |
| wandb | wandb/ | continues the wandb run; any other one is a wandb run of the same group |
| swanlab | swanlog/ | likewise |
| mlflow | mlflow.db, mlflow/ (artifacts) | is another MLflow run with the same tag `pv_rl.run` |

MLflow refuses a parameter that changes, and verl logs its whole config as parameters, the metrics file of the attempt
among them.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from pv_judge.override import override
from pv_runs.hydra_record import read_overrides, saved_config
from pv_runs.preflight.secrets import loggers
from pv_runs.run_folder import RunFolder
from pv_runs.run_record import Record

__all__ = ["logger_environment", "logger_overrides", "prepare_loggers"]

BY_NAME = ("wandb", "mlflow", "swanlab", "vemlp_wandb", "trackio", "clearml")
"""Loggers that show a run under its name, also beside runs of other folders."""
NAME = "trainer.experiment_name"


def logger_environment(folder: Path, config: DictConfig, record: Record) -> dict[str, str]:
    """Variables of the loggers that the run uses, without those that the user has set, which count instead.

    Args:
        folder: of the run.
        config: composed.
        record: of the attempt that begins.
    """
    first = _logs_as(record)
    id_ = record.id if first == 1 else f"{record.id}-{first}"
    began = saved_config(folder, ()) if RunFolder(folder).config.is_file() else config
    group = _name(folder, began, record)  # the first attempt's: a resume may change what the name is made of
    tags = {"pv_rl.run": record.id, "pv_rl.attempt": str(record.attempts), "pv_rl.folder": str(folder)}
    tensorboard = folder / "tensorboard"
    variables = {
        "tensorboard": {
            "TENSORBOARD_DIR": str(tensorboard if first == 1 else tensorboard / f"attempt-{first}"),
        },
        "wandb": {
            "WANDB_DIR": str(folder),
            "WANDB_RUN_ID": id_,
            "WANDB_RESUME": "allow",
            "WANDB_RUN_GROUP": group,
        },
        "swanlab": {
            "SWANLAB_LOG_DIR": str(folder / "swanlog"),
            "SWANLAB_RUN_ID": id_,
            "SWANLAB_RESUME": "allow",
            "SWANLAB_GROUP": group,
        },
        "mlflow": {
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'mlflow.db'}",
            "MLFLOW_RUN_CONTEXT": json.dumps(tags),
        },
    }
    of_user = {*os.environ, *(config.launch.env or {})}
    return {
        name: value
        for logger in loggers(config)
        for name, value in variables.get(logger, {}).items()
        if name not in of_user
    }


def logger_overrides(folder: Path, config: DictConfig, record: Record) -> tuple[str, ...]:
    """`trainer.experiment_name` with the run's folder in it, where a logger shows runs by their names."""
    used = loggers(config)
    if not set(used) & set(BY_NAME):
        return ()
    attempt = record.attempts if "mlflow" in used else _logs_as(record)
    name = _name(folder, config, record) + (f"-attempt-{attempt}" if attempt > 1 else "")
    return (override(NAME, name),) if name != OmegaConf.select(config, NAME) else ()


def prepare_loggers(folder: Path, config: DictConfig, environment: Mapping[str, str]) -> None:
    """Have MLflow keep its artifacts in the run's folder, if it is installed here and not only on a cluster's nodes.

    In MLflow's own database an experiment that verl creates has its artifacts in `mlruns` of the working directory.
    """
    address = environment.get("MLFLOW_TRACKING_URI", "")
    if address != f"sqlite:///{folder / 'mlflow.db'}" or importlib.util.find_spec("mlflow") is None:
        return
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    client, project = MlflowClient(address), str(config.trainer.project_name)
    if client.get_experiment_by_name(project) is None:
        client.create_experiment(project, artifact_location=str(folder / "mlflow"))


def _logs_as(record: Record) -> int:
    entry = record.history[-1] if record.history else {}
    return (
        entry.get("logs_as", record.attempts) if entry.get("attempt") == record.attempts else record.attempts
    )


def _name(folder: Path, config: DictConfig, record: Record) -> str:
    """The experiment's name and the run's folder; a name that the user gave to a single run as it is."""
    name = str(OmegaConf.select(config, NAME))
    swept = (folder.parent / "multirun.yaml").is_file()
    given = NAME in read_overrides(folder) or any(
        one.lstrip("+").startswith(f"{NAME}=") for one in record.overrides
    )
    if given and not swept:
        return name
    return f"{name}-{folder.parent.name}-{folder.name}" if swept else f"{name}-{folder.name}"
