"""`pv-data audit draw | record | status`: the audit of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pv_rl.errors import PvRlError

__all__ = ["draw", "record", "status"]

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of pv-data run.")]


def draw(
    run: Run,
    sheet: Annotated[
        Path, typer.Option("--out", help="CSV file to write: a row a proof, without its label.")
    ],
    seed: Annotated[int, typer.Option(help="Of the sample; keep it for all rounds of a run.")] = 0,
) -> None:
    """Write down which proofs to read next: the round of each slice that is neither accepted nor discarded."""
    from pv_data.run.auditing import draw_sheet

    with _said():
        count = draw_sheet(run, sheet, seed=seed)
    typer.echo(f"{count} proofs to read in {sheet}: fill in `right` with yes or no")


def record(
    run: Run,
    sheet: Annotated[Path, typer.Argument(help="The sheet, filled in.")],
    auditor: Annotated[str, typer.Option(help="Who read them.")],
) -> None:
    """Add the marks of a sheet to the run."""
    from pv_data.run.auditing import record_sheet

    with _said():
        count = record_sheet(run, sheet, auditor)
    typer.echo(f"{count} marks recorded")


def status(run: Run) -> None:
    """Say where each slice stands, and what the marks prove."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from pv_data.audit import lower_bound
    from pv_data.run.auditing import standing
    from pv_data.run.discarding import discarding

    with _said():
        states = standing(run)
    table = Table(
        Column("slice", overflow="fold"),
        "labels",
        "round",
        "agree",
        "gate",
        "to read",
        "verdict",
        "90% bound",
    )
    for state in states.values():
        proven = f"{lower_bound(state.agree, state.checked):.3f}" if state.checked else "-"
        table.add_row(
            *(escape(state.slice), str(state.size), str(state.round), f"{state.agree} of {state.checked}"),
            *(f"{state.gate:.0%}", str(state.missing), state.verdict, proven),
        )
    Console().print(table)
    discarded = [state.slice for state in states.values() if state.verdict == "discard"]
    if discarded:
        typer.echo(f"leave them out of the set: {discarding(discarded)}")


@contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except (PvRlError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
