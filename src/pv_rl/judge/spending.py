"""What a run has spent, kept beside its ledger, so that a run that goes on does not begin its budget anew."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict
from pathlib import Path

from pv_rl.errors import DataError
from pv_rl.files import write_atomically
from pv_rl.judge.budget import BudgetKeeper, Spent, Totals

__all__ = ["Spending"]

logger = logging.getLogger("pv_rl")

FILE = "spent.json"
EVERY_S = 1.0


class Spending:
    """Restores a keeper from the folder's `spent.json`, and keeps that up to date within a second.

    Raises:
        DataError: the file is not one that this class wrote.
    """

    def __init__(self, folder: str | Path, keeper: BudgetKeeper) -> None:
        self._path = Path(folder).expanduser() / FILE
        self._keeper = keeper
        self._written = 0.0
        try:
            said = json.loads(self._path.read_text())
            step, run = (Totals(**said[part]) for part in ("in_step", "in_run"))
            keeper.restore(Spent(step=int(said["step"]), in_step=step, in_run=run))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{self._path} does not say what the run has spent ({error}). Restore it, or delete it to begin the "
                "budget anew"
            ) from error

    def save(self, *, at_once: bool = False) -> None:
        """Write the file if the last time is a second ago, or `at_once`. A disk that is full is only said."""
        now = time.monotonic()
        if not at_once and now - self._written < EVERY_S:
            return
        self._written = now
        try:
            write_atomically(self._path, lambda file: file.write_text(json.dumps(asdict(self._keeper.spent))))
        except OSError as error:
            logger.warning("%s could not be written: %s", self._path, error)
