"""All that memory and time are computed from. A change to try is a `dataclasses.replace` of it."""

from __future__ import annotations

from dataclasses import dataclass

from pv_judge.config import read_config
from pv_runs.plan.assumed import Assumed
from pv_runs.plan.batch import Batch, read_batch
from pv_runs.plan.cluster import Cluster, read_cluster
from pv_runs.plan.model import ModelShape, read_model
from pv_runs.plan.rollout import Rollout, read_rollout
from pv_runs.plan.settings import Settings
from pv_runs.plan.training import Training, read_training

__all__ = ["GIB", "Setup", "read_setup"]

GIB = 2**30
"""Bytes of a GiB."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A run, as far as the plan looks at it."""

    model: ModelShape
    model_source: str
    """Where the shape was read."""
    cluster: Cluster
    batch: Batch
    training: Training
    rollout: Rollout
    assumed: Assumed

    @property
    def gpus(self) -> int:
        """All that are taken; those that train and generate count once."""
        return self.training.gpus + (self.rollout.gpus if self.batch.separate else 0)


def read_setup(settings: Settings) -> Setup:
    """Read a composed config.

    Raises:
        ConfigError: a value is missing or not what it should be.
        DataError: the model's config.json cannot be read.
    """
    given = settings.value("plan", {})
    assumed = (
        {key: value for key, value in given.items() if key != "model"} if isinstance(given, dict) else given
    )
    cluster = read_cluster(settings)
    batch = read_batch(settings)
    model, source = read_model(settings)
    return Setup(
        model=model,
        model_source=source,
        cluster=cluster,
        batch=batch,
        training=read_training(settings, batch.longest),
        rollout=read_rollout(settings, batch.separate),
        assumed=read_config(assumed, Assumed, "plan"),
    )
