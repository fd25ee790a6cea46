"""The local models of a run as they lie on disk: the hash of their weights is their revision."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from pv_data.asking.settings import Model
from pv_data.run.config import RunConfig
from pv_data.serving.checkpoint import fingerprint, model_folder
from pv_rl.judge.config import read_config

__all__ = ["LOGS", "folder_of", "with_revisions"]

LOGS = "logs"


def folder_of(model: Model, run: Path) -> Path:
    """The folder of a local model that is served; a checkpoint of verl is converted first.

    Raises:
        DataError: it holds no model.
    """
    assert model.local is not None
    return model_folder(Path(model.local.checkpoint), run / LOGS / "merge.log")


def with_revisions(config: RunConfig, run: Path) -> RunConfig:
    """The config, whose local models say what their weights are.

    Raises:
        DataError: a folder holds no model.
        ConfigError: two local models that are used are one.
    """
    models = dict(config.models)
    for name in config.named:
        model = models[name]
        if model.local is not None:
            weights = fingerprint(folder_of(model, run))
            models[name] = replace(model, revision=f"{model.revision} {weights}".strip())
    settings = {one.name: getattr(config, one.name) for one in fields(config)}
    return read_config({**settings, "models": models}, RunConfig, "the run")
