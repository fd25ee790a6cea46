"""Settings of the quick start, and the command line and environment with which it runs verl."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from pv_judge.override import override
from pv_rl.errors import DataError
from pv_runs.recipes.compose import CONFIG_MODULE

__all__ = ["CONFIG_NAME", "Settings", "environment", "verl_command"]


CONFIG_NAME = "lab"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What `pv-rl quickstart` can be told."""

    out: Path
    """Folder of the run; made anew."""
    steps: int = 20
    """Training steps, 1 or more."""
    mode: str = "balanced"
    """`actor.loss_agg_mode`: one of ours or of verl's."""
    seed: int = 0
    """Of the training data, 0 or more. Sampling is seeded too, but requests come in no fixed order, so that a
    run repeats only roughly."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise DataError(f"--steps is {self.steps}; give 1 or more")
        if self.seed < 0:
            raise DataError(f"--seed is {self.seed}; give 0 or more")


def verl_command(settings: Settings, out: Path) -> list[str]:
    """`python -m verl.trainer.main_ppo` on the lab's config, with this run's values."""
    from pv_lab import MODEL_DIR

    values = {
        "actor_rollout_ref.actor.loss_agg_mode": settings.mode,
        "model_path": MODEL_DIR,
        "seed": settings.seed,
        "data_dir": out / "data",
        "run_dir": out,
        "trainer.total_training_steps": settings.steps,
        "hydra.run.dir": out / "hydra",
    }
    return [
        *(sys.executable, "-m", "verl.trainer.main_ppo"),
        *("--config-path", f"pkg://{CONFIG_MODULE}", "--config-name", CONFIG_NAME, "cluster=cpu"),
        *(override(key, value) for key, value in values.items()),
    ]


def environment(metrics: Path) -> dict[str, str]:
    """What the command needs, beside the environment that it inherits."""
    return {
        "VERL_PLATFORM": "cpu",
        "VERL_FILE_LOGGER_PATH": str(metrics),
        "VERL_USE_EXTERNAL_PLUGINS": "pv_rl,pv_cpu",
        "HF_HUB_OFFLINE": "1",
        "HYDRA_FULL_ERROR": "1",
        "PYTHONWARNINGS": "ignore",
    }
