"""What the quick start can be told, and which config it runs."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from pv_rl.errors import DataError, SetupError

__all__ = ["CONFIG_NAME", "Settings", "check_environment"]

CONFIG_NAME = "lab"
NEEDS = ("verl", "pv_cpu", "matplotlib", "pyarrow", "transfer_queue", "psutil")


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


def check_environment() -> None:
    """Raise `SetupError` with the names of packages that are missing."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(
            f"the quick start needs {', '.join(missing)}, which cannot be imported here. "
            "In a clone: make quickstart. Elsewhere: pip install 'pv-rl[quickstart]'; pv-rl doctor says more."
        )
