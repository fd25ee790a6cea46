"""The settings on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pv_judge.pages.blocks import Grid
from pv_judge.pages.text import plural
from pv_runs.report.content import settings_grid
from pv_runs.report.summary import Summary

__all__ = ["print_report"]


def print_report(summary: Summary, console: Console) -> None:
    """Print the table of settings and the notes. Columns for which there is no room go on in a further table."""
    counted = f"{plural(len(summary.runs), 'run')} of {plural(len(summary.settings), 'setting')}"
    _say(console, f"{summary.source}: {counted}", style="bold")
    grid = settings_grid(summary)
    columns = list(range(grid.leading, len(grid.heads)))
    leading = list(range(grid.leading))
    while leading:
        fit = 0
        while fit < len(columns) and _width(_table(grid, [*leading, *columns[: fit + 1]])) <= console.width:
            fit += 1
        fit = max(fit, 1)
        table = _table(grid, [*leading, *columns[:fit]])
        console.print()
        console.print(
            table, crop=False, overflow="ignore", no_wrap=True, width=max(console.width, _width(table))
        )
        columns = columns[fit:]
        leading = [0] if columns else []  # a further table says again which setting, and no more
    _say(console, "\nmean over seeds (95 % interval of Student's t)")
    for note in summary.notes:
        _say(console, f"- {note}")


def _table(grid: Grid, columns: Sequence[int]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        title, unit = grid.heads[column]
        table.add_column(Text(f"{title}\n{unit}"), justify="left" if column < grid.leading else "right")
    for cells in grid.lines:
        table.add_row(*(Text(cells[column]) for column in columns))
    return table


def _width(table: Table) -> int:
    """Of the table if nothing is cut."""
    return Console(width=100_000).measure(table).maximum


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)
