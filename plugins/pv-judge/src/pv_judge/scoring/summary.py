"""Summary of scored rows: running sums, and the table that is printed of them."""

from __future__ import annotations

from collections.abc import Sequence

from pv_judge.pages.blocks import Column, Heading, Table
from pv_judge.pages.terminal import print_blocks, standard_output
from pv_rl.rewards.base import RewardOutput

__all__ = ["Summary"]


class Summary:
    """Sums over rows."""

    def __init__(self) -> None:
        self.rows = 0
        self._valid = 0
        self._score = 0.0
        self._metrics: dict[str, float] = {}

    def add(self, output: RewardOutput) -> None:
        """Count a row."""
        self.rows += 1
        self._valid += output.valid
        self._score += output.score
        for name, value in output.metrics.items():
            self._metrics[name] = self._metrics.get(name, 0.0) + value

    def print(self, title: str, seconds: float, judges: Sequence[dict[str, float]]) -> None:
        """Print means over rows, the score's over those that have a reward, and what the judges report."""
        numbers = {
            "rows": f"{self.rows}",
            "seconds": f"{seconds:.2f}",
            "without a reward": f"{self.rows - self._valid}",
        }
        if self._valid:
            numbers["mean score"] = f"{self._score / self._valid:.4f}"
        numbers |= {name: f"{total / self.rows:.4f}" for name, total in self._metrics.items()}
        for report in judges:
            numbers |= {
                f"judge: {name.removesuffix('/sum').removesuffix('/max')}": f"{value:.4g}"
                for name, value in report.items()
            }
        columns: list[Column[tuple[str, str]]] = [
            Column("", lambda row: row[0], left=True),
            Column("", lambda row: row[1], left=True),
        ]
        print_blocks([Heading(title, level=1), Table.of(columns, numbers.items())], standard_output())
