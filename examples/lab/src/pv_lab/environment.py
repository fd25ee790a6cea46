"""Environment checks: packages that a command of the lab needs."""

from __future__ import annotations

import importlib.util

from pv_rl.errors import SetupError

__all__ = ["check_environment"]

NEEDS = ("verl", "pv_cpu", "matplotlib", "scipy", "pyarrow", "transfer_queue", "psutil")
OF_TRAINER = {"trl": {"trl": "trl==1.16.0", "pv_trainers": "./plugins/pv-trainers"}}
"""What a trainer beside verl needs as well, and what to give pip for it."""


def check_environment(what: str, trainer: str = "verl") -> None:
    """Check before anything starts.

    Args:
        what: the command, for the error.
        trainer: verl, or another trainer beside it.

    Raises:
        SetupError: packages are missing; the text names them.
    """
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(
            f"{what} needs {', '.join(missing)}, which cannot be imported here. In a clone: make quickstart. "
            "Without make: the pip lines of the README. `pv-rl doctor` shows what is missing."
        )
    missing = [name for name in OF_TRAINER.get(trainer, ()) if importlib.util.find_spec(name) is None]
    if missing:
        install = " ".join(OF_TRAINER[trainer][name] for name in missing)
        raise SetupError(
            f"--trainer {trainer} needs {', '.join(missing)}, which cannot be imported here. In a clone, with the "
            f"environment of the quick start: pip install {install}"
        )
