"""The local models of a run as they lie on disk: the hash of their weights is their revision."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

from pv_data.asking.settings import Model
from pv_data.run.config import RunConfig
from pv_data.run.manifest import FILE
from pv_data.serving.checkpoint import fingerprint, model_folder
from pv_judge.config import read_config

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
            models[name] = replace(model, revision=_revision(model, run))
    settings = {one.name: getattr(config, one.name) for one in fields(config)}
    return read_config({**settings, "models": models}, RunConfig, "the run")


def _revision(model: Model, run: Path) -> str:
    assert model.local is not None
    if not Path(model.local.checkpoint).exists() and (written := _written(model, run)):
        return written  # the run was made elsewhere, and may have nothing left to ask
    return f"{model.revision} {fingerprint(folder_of(model, run))}".strip()


def _written(model: Model, run: Path) -> str:
    """The revision that the run's folder has been made with; empty where it says nothing of such a model."""
    try:
        settings = json.loads((run / FILE).read_text())["settings"]
        asked = [one["asks"] for one in (*settings["generate"], *settings["panel"]) if one["asks"]]
    except (OSError, ValueError, KeyError, TypeError):  # `check_manifest` will say what is wrong with it
        return ""
    for (name, _), *_, sampling in asked:
        made = json.loads(sampling)
        revision = made.pop("revision", "")
        same = made == json.loads(replace(model, revision="").fields())
        if name == model.model and same and revision.startswith(model.revision):
            return revision
    return ""
