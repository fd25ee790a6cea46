"""Run folder: storage paths, the lock, and what the run has spent."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from pv_data.asking.kept_answers import Unanswered
from pv_data.run.config import RunConfig
from pv_judge.budget import BudgetKeeper, Totals
from pv_judge.config import Budget
from pv_judge.files import with_checksum, write_atomically
from pv_judge.spend_file import FILE, read_spent
from pv_rl.errors import SetupError

__all__ = [
    "answers_path",
    "budget_of",
    "fold",
    "forget_doubtful",
    "forget_failures",
    "locked",
    "note_refusal",
    "spent",
    "take_refusals",
    "unanswered_path",
]


def answers_path(run: Path) -> Path:
    """All that models have answered, unless a model has a cache of its own."""
    return run / "answers.sqlite"


def unanswered_path(run: Path) -> Path:
    """The answers of a stage that nobody can use; it begins anew with each."""
    return run / "workers" / "unanswered.sqlite"


def forget_doubtful(run: Path) -> None:
    """Before a stage: the failures of a model that did not work when the run ended."""
    if not unanswered_path(run).exists():
        return
    with closing(Unanswered(unanswered_path(run))) as file:
        in_doubt = file.in_doubt
    if in_doubt:
        forget_failures(run)


def forget_failures(run: Path) -> None:
    """When a stage is done. Until then a run that goes on does not ask again what could not be used."""
    path = unanswered_path(run)
    for name in ("", "-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)


NOTES = "refused.txt"


def note_refusal(worker: Path, line: str) -> None:
    """Write down, in the folder of a process, that an endpoint refuses every request."""
    with (worker / NOTES).open("a", encoding="utf-8", errors="replace") as file:
        file.write(line + "\n")


def take_refusals(run: Path) -> list[str]:
    """What the processes wrote down, each line once; it is forgotten."""
    lines: dict[str, None] = {}
    for path in sorted((run / "workers").glob(f"*/{NOTES}")):
        lines |= dict.fromkeys(path.read_text(encoding="utf-8", errors="replace").splitlines())
        path.unlink()
    return list(lines)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for as long as this lasts; the lock ends with the process, however that ends.

    Raises:
        SetupError: another process holds it.
    """
    with (folder / "run.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(f"another pv-data is working in {folder}. Wait for it or stop it") from error
        yield


def budget_of(run: Path, config: RunConfig, money: float) -> BudgetKeeper:
    """The budget of one of several processes: this part of what the run has left."""
    prices: dict[str, Any] = {}
    for model in config.models.values():
        prices |= model.prices
    left = None
    if config.budget_usd is not None:
        left = max(0.0, config.budget_usd - _read(run / FILE).usd) * money
    return BudgetKeeper(Budget(usd_per_run=left), prices)


def spent(run: Path) -> Totals:
    """Of the run so far, at most a second old; requests in flight at their worst."""
    total = _read(run / FILE)
    for path in _of_workers(run):
        total = total.plus(**vars(_read(path)))
    return total


def fold(run: Path) -> None:
    """Add what the processes of an earlier attempt have spent to the run's own, when none of them is at work.

    A crash in the middle counts something twice rather than not at all.
    """
    total = spent(run)
    text = json.dumps(with_checksum({"in_run": vars(total)}))
    write_atomically(run / FILE, lambda path: path.write_text(text))
    for path in _of_workers(run):
        path.unlink()


def _of_workers(run: Path) -> list[Path]:
    return sorted((run / "workers").glob(f"*/{FILE}"))


def _read(path: Path) -> Totals:
    return read_spent(path) or Totals()
