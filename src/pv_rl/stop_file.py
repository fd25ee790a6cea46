"""Stop file: asks a run to end after its step, with a checkpoint. Every node that sees the folder sees it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["STOP_FILE", "ask_to_stop", "asked_to_stop", "forget"]

STOP_FILE = "pv_rl_stop"
"""In `trainer.default_local_dir`. `touch` it to stop a run that somebody else started."""


def ask_to_stop(checkpoints: Path) -> None:
    """Ask the run that writes its checkpoints there."""
    checkpoints.mkdir(parents=True, exist_ok=True)
    (checkpoints / STOP_FILE).touch()


def asked_to_stop(checkpoints: Path) -> bool:
    """Whether a stop was requested."""
    return (checkpoints / STOP_FILE).exists()


def forget(checkpoints: Path) -> None:
    """Withdraw the request."""
    (checkpoints / STOP_FILE).unlink(missing_ok=True)
