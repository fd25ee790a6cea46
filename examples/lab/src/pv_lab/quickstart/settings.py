"""Settings of the quick start, and the command line and environment of the trainer."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from pv_judge.override import override
from pv_rl.errors import DataError
from pv_runs.recipes.compose import CONFIG_MODULE

__all__ = ["CONFIG_NAME", "PROGRAMS", "Settings", "environment", "trainer_command"]

CONFIG_NAME = "lab"
PROGRAMS = {"verl": "verl.trainer.main_ppo", "trl": "pv_lab.quickstart.trl_main"}
"""The module of each trainer. Both take the same config and the same overrides."""
MICRO_BATCHES = (
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu",
    "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu",
)
"""Tokens of a micro-batch: at 4,096 the activations of this model nearly fit a core's cache, and forward and backward
passes take a fifth less processor time than with one micro-batch a step."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What `pv-rl quickstart` can be told."""

    out: Path
    """Folder of the run; made anew."""
    steps: int = 14
    """Training steps, 1 or more."""
    mode: str = "balanced"
    """`actor.loss_agg_mode`: one of ours, or of verl's with the trainer verl."""
    seed: int = 0
    """Of the training data and of sampling, 0 or more. verl's requests come in no fixed order, so that its runs
    repeat only roughly; TRL's repeat to rounding."""
    trainer: str = "verl"
    """A key of `PROGRAMS`."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise DataError(f"--steps is {self.steps}; give 1 or more")
        if self.seed < 0:
            raise DataError(f"--seed is {self.seed}; give 0 or more")
        if self.trainer not in PROGRAMS:
            raise DataError(f"--trainer is {self.trainer!r}; give {' or '.join(PROGRAMS)}")


def trainer_command(settings: Settings, out: Path) -> list[str]:
    """`python -m verl.trainer.main_ppo`, or TRL's program, on the lab's config with this run's values."""
    from pv_lab import MODEL_DIR

    values = {
        "actor_rollout_ref.actor.loss_agg_mode": settings.mode,
        "model_path": MODEL_DIR,
        "seed": settings.seed,
        "data_dir": out / "data",
        "run_dir": out,
        "trainer.total_training_steps": settings.steps,
        "trainer.test_freq": max(5, -(-settings.steps // 2)),  # at the start, in the middle and at the end
        **dict.fromkeys(MICRO_BATCHES, 4096),
        "hydra.run.dir": out / "hydra",
    }
    if settings.trainer != "verl":
        # The program does not read it. `pv-rl report` names settings by the overrides in which runs differ.
        values["+quickstart.trainer"] = settings.trainer
    return [
        *(sys.executable, "-m", PROGRAMS[settings.trainer]),
        *("--config-path", f"pkg://{CONFIG_MODULE}", "--config-name", CONFIG_NAME, "cluster=cpu"),
        *(override(key, value) for key, value in values.items()),
    ]


def environment(metrics: Path, trainer: str = "verl") -> dict[str, str]:
    """What the command needs, beside the environment that it inherits."""
    return {
        # On two busy cores verl's passes over these micro-batches take a third less processor time with one thread
        # than with two, and TRL generates seven times faster.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "VERL_PLATFORM": "cpu",
        "VERL_FILE_LOGGER_PATH": str(metrics),
        "VERL_USE_EXTERNAL_PLUGINS": "pv_rl,pv_cpu",
        "HF_HUB_OFFLINE": "1",
        "HYDRA_FULL_ERROR": "1",
        "PYTHONWARNINGS": "ignore",
    }
