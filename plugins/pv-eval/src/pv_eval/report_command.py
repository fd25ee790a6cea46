"""Command `pv-eval report`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pv_judge.pages.text import plain, shorten
from pv_rl.errors import ConfigError
from pv_rl.exits import errors_to_exit

if TYPE_CHECKING:
    from pv_eval.report.summary import Group
    from pv_judge.pages.blocks import Table

__all__ = ["report"]


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Runs (folders with pairs.parquet, votes.parquet and run.json), or folders of runs. The first run of "
            "each set is what others on the set are compared with.",
            metavar="FOLDER...",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write to.", show_default="report/ in the first folder")
    ] = None,
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
    """Measure verifiers from their votes: a page, Markdown and JSON, beside the paper's numbers.

    Example: pv-eval report runs/base runs/trained --out report
    """
    from pv_eval.report.grade_tables import grade_blocks, step_blocks
    from pv_eval.report.paper_layout import write_paper
    from pv_eval.report.tables import main_table
    from pv_eval.report.writing import write_report
    from pv_eval.run_files import find_runs
    from pv_judge.pages.blocks import Heading, Items
    from pv_judge.pages.terminal import print_blocks, print_line, standard_output

    with errors_to_exit():
        if layout not in ("report", "paper"):
            raise ConfigError(f"--layout is {layout!r}; expected report or paper")
        if out is None:
            find_runs(folders[:1])  # the error names the run that is missing, not the report's folder in it
        folder = out or folders[0] / "report"
        if layout == "paper":
            page, files = write_paper(folders, folder, models=models)
            print_blocks(page, standard_output())
            for path in files:
                print_line(standard_output(), f"wrote {path}")
            return
        if models is not None:
            raise ConfigError("--models is for --layout paper; add --layout paper, or leave --models out")
        summary, files = write_report(folders, folder, cases=cases)
    console = standard_output()
    for group in summary.groups:
        if len(summary.groups) > 1:
            print_blocks([Heading(plain(group.name))], console)
        graded = [(entry.name, entry.graded) for entry in group.entries if entry.graded]
        named = [(entry.name, entry.steps) for entry in group.entries if entry.steps]
        print_blocks(
            [
                _upright(main_table(group.entries)),
                Items([*_problems(group), *group.grades_apart]),
                *grade_blocks(graded, group.grades_versus, terminal=True),
                *step_blocks(named, terminal=True),
            ],
            console,
        )
    print_line(console, f"comparison of verifiers, majority and best-of-k: {folder / 'report.md'}")
    for path in files:
        print_line(console, f"wrote {path}")


def _upright(table: Table) -> Table:
    """A verifier a column: a terminal is not wide enough for a line each."""
    from pv_judge.pages.blocks import Column, Table

    titles = [f"{one.title} ({one.unit})" if one.unit else one.title for one in table.columns]
    columns = [
        Column("", lambda place: titles[place], left=True),
        *(
            Column("\n".join(textwrap.wrap(shorten(row[0], 72), 24)), lambda place, row=row: row[place])
            for row in table.rows
        ),
    ]
    return Table.of(columns, range(1, len(titles)))


def _problems(group: Group) -> list[str]:
    return [
        plain(f"{entry.name}: {problem}", 400)
        for entry in group.entries
        for problem in entry.evaluation.problems
    ]
