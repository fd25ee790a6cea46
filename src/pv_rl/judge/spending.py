"""What a run has spent, kept beside its ledger or else its cache: a run that goes on does not begin its budget anew."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict
from pathlib import Path

from pv_rl.errors import DataError
from pv_rl.files import write_atomically
from pv_rl.judge.budget import BudgetKeeper, Spent, Totals

__all__ = ["FILE", "Spending", "read_spent"]

logger = logging.getLogger("pv_rl")

FILE = "spent.json"
EVERY_S = 1.0


def read_spent(path: Path) -> Totals | None:
    """What a `spent.json` says of its run; None where there is none.

    Raises:
        DataError: the file is not one that `Spending` wrote.
    """
    try:
        said = json.loads(path.read_text())["in_run"]
        numbers = {name: said[name] for name in ("usd", "calls", "tokens")}
        if not all(isinstance(number, int | float) and number >= 0 for number in numbers.values()):
            raise ValueError("a number that is none, or below 0")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} does not say what the run has spent ({error}). Restore it, or delete it to begin the budget anew"
        ) from error
    return Totals(**numbers)


class Spending:
    """Restores what the run has spent from the folder's `spent.json`, and keeps that up to date within a second.

    Raises:
        DataError: the file is not one that this class wrote.
    """

    def __init__(self, folder: str | Path, keeper: BudgetKeeper) -> None:
        self._path = Path(folder).expanduser() / FILE
        self._keeper = keeper
        self._due: asyncio.TimerHandle | None = None
        if (spent := read_spent(self._path)) is not None:
            keeper.restore(Spent(in_run=spent))

    def save(self, *, at_once: bool = False) -> None:
        """Write the file within a second, or `at_once`. A disk that is full is only said."""
        if not at_once:
            if self._due is None:
                self._due = asyncio.get_running_loop().call_later(EVERY_S, self._save_due)
            return
        try:
            write_atomically(self._path, lambda file: file.write_text(json.dumps(asdict(self._keeper.spent))))
        except OSError as error:
            logger.warning("%s could not be written: %s", self._path, error)

    def _save_due(self) -> None:
        self._due = None
        self.save(at_once=True)
