"""Command `pv-eval aggregate`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_rl.exits import errors_to_exit

__all__ = ["aggregate"]


def aggregate(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...",
            show_default=False,
            help="Runs of verifiers or prompts on the same pairs, or folders of runs; gains are over one vote of the "
            "first.",
        ),
    ],
    missing: Annotated[
        str, typer.Option(help="A vote without a verdict: abstain, or reject the proof.")
    ] = "abstain",
    unit: Annotated[
        str,
        typer.Option(
            help="Unit of costs: usd, tokens or votes.", show_default="the first that all runs have"
        ),
    ] = "",
    budget: Annotated[
        list[float] | None,
        typer.Option(
            min=0, help="Highest cost of a proof. Repeatable.", show_default="the cheapest vote, doubled"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for aggregate.html, .md and .json.", show_default="none")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds and halves.")] = 0,
) -> None:
    """Which use of several votes is worth its cost: majority, vetoes, weights, ensembles of verifiers and prompts.

    Example: pv-eval aggregate runs/base runs/trained
    """
    from pv_eval.aggregate.members import read_members
    from pv_eval.aggregate.page import aggregate_votes, blocks, document
    from pv_eval.intervals import Intervals
    from pv_judge.pages.terminal import print_blocks, print_line, standard_output
    from pv_judge.pages.writing import check_folder, write_pages

    with errors_to_exit():
        if out is not None:
            check_folder(out)
        members = read_members(folders)
        how = Intervals(seed=seed)
        found = aggregate_votes(members, how, missing=missing, unit=unit, budgets=sorted(budget or []))
        files = [] if out is None else write_pages(out, blocks(found), document(found), name="aggregate")
    console = standard_output()
    print_blocks(list(blocks(found, short=True)), console)
    for path in files:
        print_line(console, f"wrote {path}")
