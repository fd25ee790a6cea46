"""Environment checks: packages that a command of the lab needs."""

from __future__ import annotations

import importlib.util

from pv_rl.errors import SetupError
from pv_rl.installing import how_to_install

__all__ = ["check_environment"]

NEEDS = ("verl", "pv_cpu", "matplotlib", "scipy", "pyarrow", "transfer_queue", "psutil")
OF_TRAINER = {"trl": {"trl": "pip install trl==1.16.0", "pv_trainers": how_to_install("pv-trainers")}}
"""What a trainer beside verl needs as well, and how to install it."""


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
        install = ". ".join(OF_TRAINER[trainer][name] for name in missing)
        raise SetupError(
            f"--trainer {trainer} needs {', '.join(missing)}, which cannot be imported here. In the environment of "
            f"the quick start: {install}"
        )
