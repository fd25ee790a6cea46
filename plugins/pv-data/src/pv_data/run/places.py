"""Where a run keeps answers."""

from __future__ import annotations

from pathlib import Path

__all__ = ["answers", "unanswered"]


def answers(run: Path) -> Path:
    """All that models have answered, unless a model has a cache of its own."""
    return run / "answers.sqlite"


def unanswered(run: Path) -> Path:
    """Why local models gave no usable answer in the batch of a stage (executor=ray); it begins anew with each."""
    return run / "workers" / "unanswered.sqlite"
