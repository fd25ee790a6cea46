"""Command `pv-eval report`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_rl.errors import ConfigError, PvRlError

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
    layout: Annotated[
        str,
        typer.Option(
            help="report, or paper: the paper's six tables and its best-of-k figure, beside its numbers."
        ),
    ] = "report",
    models: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML for --layout paper: by a verifier's name its base model, kind, or row in the paper's tables.",
        ),
    ] = None,
) -> None:
    """Measure verifiers from their votes: a page, Markdown and JSON, beside the paper's numbers."""
    from pv_eval.intervals import Bootstrap
    from pv_eval.report.paper_layout import write_paper
    from pv_eval.report.tables import main_table
    from pv_eval.report.writing import write_report
    from pv_judge.pages.blocks import Column, Items, Table
    from pv_judge.pages.terminal import print_blocks, print_line, standard_output
    from pv_judge.pages.text import plain

    try:
        how = Bootstrap(resamples=resamples, seed=seed)
        if layout not in ("report", "paper"):
            raise ConfigError(f"--layout is {layout!r}; expected report or paper")
        if layout == "paper":
            page, files = write_paper(folders, out or folders[0] / "report", how, models)
            print_blocks(page, standard_output())
            for path in files:
                print_line(standard_output(), f"wrote {path}")
            return
        if models is not None:
            raise ConfigError("--models is for --layout paper; add --layout paper, or leave --models out")
        summary, files = write_report(folders, out or folders[0] / "report", how, cases=cases)
    except (PvRlError, OSError) as error:
        typer.echo(f"pv-eval report: {plain(error, 2000)}", err=True)
        raise typer.Exit(1) from error
    console = standard_output()
    table = main_table(summary.entries)
    titles = [f"{one.title} ({one.unit})" if one.unit else one.title for one in table.columns]
    # upright: a verifier a column, since a terminal is not wide enough for a line each
    columns = [
        Column("", lambda place: titles[place], left=True),
        *(Column(plain(row[0], 40), lambda place, row=row: row[place]) for row in table.rows),
    ]
    problems = [
        plain(f"{entry.name}: {problem}", 400)
        for entry in summary.entries
        for problem in entry.evaluation.problems
    ]
    print_blocks([Table.of(columns, range(1, len(titles))), Items(problems)], console)
    for path in files:
        print_line(console, f"wrote {path}")
