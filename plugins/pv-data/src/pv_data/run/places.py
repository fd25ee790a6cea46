"""Where a run keeps answers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pv_data.asking.kept_answers import Unanswered

__all__ = ["answers", "forget_doubtful", "forget_failures", "unanswered"]


def answers(run: Path) -> Path:
    """All that models have answered, unless a model has a cache of its own."""
    return run / "answers.sqlite"


def unanswered(run: Path) -> Path:
    """The answers of a stage that nobody can use; it begins anew with each."""
    return run / "workers" / "unanswered.sqlite"


def forget_doubtful(run: Path) -> None:
    """Before a stage: the failures of a model that did not work when the run ended."""
    if not unanswered(run).exists():
        return
    with closing(Unanswered(unanswered(run))) as file:
        in_doubt = file.in_doubt
    if in_doubt:
        forget_failures(run)


def forget_failures(run: Path) -> None:
    """When a stage is done. Until then a run that goes on does not ask again what could not be used."""
    path = unanswered(run)
    for name in ("", "-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
