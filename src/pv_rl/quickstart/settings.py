"""What the quick start can be told, and which config it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pv_rl.errors import DataError

__all__ = ["CONFIG_MODULE", "CONFIG_NAME", "Settings"]

CONFIG_MODULE, CONFIG_NAME = "pv_rl.hydra_configs.runs", "lab"


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
    """Of the training data and of sampling; 0 or more."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise DataError(f"--steps is {self.steps}; give 1 or more")
        if self.seed < 0:
            raise DataError(f"--seed is {self.seed}; give 0 or more")
