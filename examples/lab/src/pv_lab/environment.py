"""Environment checks: packages and disk space that a command of the lab needs."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from pv_judge.pages.text import plural
from pv_rl.errors import SetupError
from pv_rl.installing import how_to_install

__all__ = ["check_environment", "check_room"]

NEEDS = ("verl", "pv_cpu", "matplotlib", "scipy", "pyarrow", "transfer_queue", "psutil")
OF_TRAINER = {"trl": {"trl": "pip install trl==1.16.0", "pv_trainers": how_to_install("pv-trainers")}}
"""What a trainer beside verl needs as well, and how to install it."""
ROOM = 60_000_000
"""Bytes of a run, at most: two checkpoints of 0.9M parameters with Adam's two moments in float32 (11 MB each), the
model that it starts from (4 MB), the traces of 30 steps (128 a step, 300 bytes each) and logs; doubled."""


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


def check_room(out: Path, runs: int) -> None:
    """Refuse a disk that would be full before the runs have ended.

    Args:
        out: folder of the runs; it need not be there yet.
        runs: that are still to be trained.

    Raises:
        SetupError: there is too little room.
    """
    there = next(folder for folder in (out.resolve(), *out.resolve().parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if free < runs * ROOM:
        raise SetupError(
            f"{there} has {free / 1e6:,.0f} MB free, and {plural(runs, 'run')} may need {runs * ROOM / 1e6:,.0f} MB: "
            "make room, name another --out, or take fewer --seeds"
        )
