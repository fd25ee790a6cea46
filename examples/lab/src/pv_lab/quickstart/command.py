"""The command line and the environment with which the quick start runs verl."""

from __future__ import annotations

import sys
from pathlib import Path

from pv_lab.quickstart.settings import CONFIG_NAME, Settings
from pv_rl.recipes.override import override
from pv_runs.recipes.compose import CONFIG_MODULE

__all__ = ["environment", "verl_command"]


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
