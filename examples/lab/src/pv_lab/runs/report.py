"""The command `pv-rl lab report`: writes the report of a lab's runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pv_judge.pages.markdown_file import to_markdown
from pv_judge.pages.web_page import to_html
from pv_lab.runs.content import lab_content, order_lines, stages_grid
from pv_lab.runs.figure import draw_lab
from pv_lab.runs.measures import STAGED
from pv_lab.runs.order import Order, find_orders
from pv_lab.runs.stages import stages_of
from pv_lab.runs.summary import summarise_lab
from pv_rl.errors import DataError
from pv_rl.files import write_together
from pv_runs.report.document import document
from pv_runs.report.figure import check_figure
from pv_runs.report.summary import Summary

__all__ = ["report_lab"]


def report_lab(folder: Path, *, out: Path | None = None, console: Console | None = None) -> None:
    """Read the runs of `pv-rl lab run`, print the stages and write report.md, .png, .html and .json, all or none.

    Args:
        folder: of the runs.
        out: where to write, made if need be; `folder/report` without it.
        console: standard output without it.

    Raises:
        PvRlError: something given or found is not what it should be.
        OSError: a file cannot be read or written.
    """
    target = out or folder / "report"
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is no folder, so nothing can be written there; name another with --out")
    check_figure()
    summary = summarise_lab(folder)
    orders = find_orders(summary.settings)
    picture = draw_lab(summary)
    blocks = list(lab_content(summary, orders))
    files = {
        "report.png": picture,
        "report.md": to_markdown(blocks, "report.png").encode(),
        "report.html": to_html(blocks, picture).encode(),
        "report.json": (json.dumps(_document(summary, orders), allow_nan=False) + "\n").encode(),
    }
    target.mkdir(parents=True, exist_ok=True)
    write_together({target / name: data for name, data in files.items()})
    _print(summary, orders, console or _console())
    for name in files:
        (console or _console()).print(f"wrote {target / name}", markup=False, highlight=False, soft_wrap=True)


def _document(summary: Summary, orders: list[Order]) -> dict[str, Any]:
    """`pv_runs.report.document` with `stages` (by measure and weighting) and `order` (a stage each)."""
    stages = {
        measure.name: {
            setting.label: {
                name: asdict(stage)
                for name, stage in stages_of(setting, measure, summary.keys[measure]).items()
            }
            for setting in summary.settings
        }
        for measure in STAGED
        if measure in summary.keys
    }
    order = [
        {
            **{
                key: getattr(one, key)
                for key in ("stage", "first", "last", "labels", "seeds", "in_order", "there")
            },
            "differences": [
                {"longer": longer, "shorter": shorter, **asdict(mean)}
                for (longer, shorter), mean in one.differences.items()
            ],
        }
        for one in orders
    ]
    return document(summary) | {"stages": stages, "order": order}


def _print(summary: Summary, orders: list[Order], console: Console) -> None:
    grid = stages_grid(summary)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column, (title, _) in enumerate(grid.heads):
        table.add_column(Text(title), justify="left" if column < grid.leading else "right")
    for cells in grid.lines:
        table.add_row(*map(Text, cells))
    console.print(table)
    console.print("mean over seeds (95 % interval of Student's t)\n", highlight=False)
    for line in (*order_lines(orders), *summary.notes):
        console.print(Text(f"- {line}"), soft_wrap=not console.is_terminal)


def _console() -> Console:
    """Standard output: as wide as the terminal, or as wide as need be where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=1000)
