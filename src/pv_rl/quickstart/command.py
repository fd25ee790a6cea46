"""The command line and the environment with which the quick start runs verl."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from pv_rl.quickstart.settings import CONFIG_MODULE, CONFIG_NAME, Settings

__all__ = ["environment", "override", "script", "verl_command"]


def verl_command(settings: Settings, out: Path) -> list[str]:
    """`python -m verl.trainer.main_ppo` on the lab's config, with this run's values."""
    from pv_rl.lab import MODEL_DIR

    values = {
        "actor_rollout_ref.actor.loss_agg_mode": settings.mode,
        "actor_rollout_ref.model.path": MODEL_DIR,
        "actor_rollout_ref.rollout.seed": settings.seed,
        "actor_rollout_ref.actor.data_loader_seed": settings.seed,
        "data.train_files": out / "data" / "train.parquet",
        "data.val_files": out / "data" / "test.parquet",
        "data.seed": settings.seed,
        "trainer.total_training_steps": settings.steps,
        "trainer.default_local_dir": out / "checkpoints",
        "hydra.run.dir": out / "hydra",
    }
    return [
        *(sys.executable, "-m", "verl.trainer.main_ppo"),
        *("--config-path", f"pkg://{CONFIG_MODULE}", "--config-name", CONFIG_NAME, "+cluster=cpu"),
        *(override(key, value) for key, value in values.items()),
    ]


def override(key: str, value: object) -> str:
    """A Hydra override; text is quoted, since a path may hold `=`, `,`, brackets, quotes or `${`."""
    if isinstance(value, int):
        return f"{key}={value}"
    text = str(value).replace("'", "\\'").replace("${", "\\${")
    return f"{key}='{text}'"


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


def script(command: list[str], out: Path) -> str:
    """A shell script that runs verl again without us, its metrics in another file."""
    variables = (f"{name}={shlex.quote(value)}" for name, value in environment(out / "again.jsonl").items())
    lines = [*variables, shlex.join(command[:3]), *map(shlex.quote, command[3:])]
    return "#!/bin/sh\n# What pv-rl quickstart ran.\nunset RAY_ADDRESS\n" + " \\\n  ".join(lines) + "\n"
