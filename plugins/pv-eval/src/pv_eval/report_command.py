"""The command `pv-data report`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_rl.errors import PvRlError

__all__ = ["report"]


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Runs: folders with pairs.parquet, votes.parquet and run.json. Others are compared with the first.",
            metavar="FOLDER...",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="report/ in the first folder")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap; 0 for no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    cases: Annotated[
        int, typer.Option(min=0, max=50, help="Errors of each class, and disagreements each way, to show.")
    ] = 3,
) -> None:
    """Measure verifiers from their votes: a page, Markdown and JSON, beside the paper's numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from pv_eval.intervals import Bootstrap
    from pv_eval.report.tables import main_grid
    from pv_eval.report.writing import write_report
    from pv_judge.pages.text import plain

    try:
        how = Bootstrap(resamples=resamples, seed=seed)
        summary, files = write_report(folders, out or folders[0] / "report", how, cases=cases)
    except (PvRlError, OSError) as error:
        typer.echo(f"pv-data report: {plain(error, 2000)}", err=True)
        raise typer.Exit(1) from error
    console = Console(highlight=False)
    grid = main_grid(summary.entries)
    # upright: a verifier a column, since a terminal is not wide enough for a line each
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, name in enumerate(["", *(line[0] for line in grid.lines)]):
        table.add_column(Text(plain(name, 40)), justify="right" if column else "left")
    for row, (title, unit) in enumerate(grid.heads[1:], start=1):
        table.add_row(Text(f"{title} ({unit})" if unit else title), *(Text(line[row]) for line in grid.lines))
    console.print(table)
    for entry in summary.entries:
        for problem in entry.evaluation.problems:
            console.print(Text(f"- {plain(f'{entry.name}: {problem}', 400)}"), soft_wrap=True)
    for path in files:
        console.print(Text(f"wrote {path}"), soft_wrap=True)
