"""Spending of a run, summed over its processes and resumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pv_data.run.config import RunConfig
from pv_judge.budget import BudgetKeeper, Totals
from pv_judge.config import Budget
from pv_judge.spend_file import FILE, read_spent
from pv_rl.files import write_atomically

__all__ = ["budget_of", "fold", "spent"]


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
    write_atomically(run / FILE, lambda path: path.write_text(json.dumps({"in_run": vars(total)})))
    for path in _of_workers(run):
        path.unlink()


def _of_workers(run: Path) -> list[Path]:
    return sorted((run / "workers").glob(f"*/{FILE}"))


def _read(path: Path) -> Totals:
    return read_spent(path) or Totals()
