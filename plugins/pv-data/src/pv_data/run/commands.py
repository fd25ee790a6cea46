"""Commands `pv-data run` and `pv-data audit draw | record | status`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pv_data.shell import errors_to_exit
from pv_judge.files import check_target, write_atomically
from pv_judge.pages.text import visible
from pv_rl.errors import PvRlError

__all__ = ["draw", "record", "run_command", "status"]


def run_command(
    config: Annotated[
        str, typer.Argument(help="A YAML file, or the name of a config that comes with pv-data.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Hydra's overrides.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what the run would ask and cost. Asks and writes nothing."),
    ] = False,
    redo: Annotated[
        str, typer.Option(help="Do this stage and all later ones again: collect, generate or judge.")
    ] = "",
    export_only: Annotated[
        bool, typer.Option("--export-only", help="Export what has a label so far. Asks nothing.")
    ] = False,
) -> None:
    """Build a set: collect, generate, judge, split, export. Run the same command again to resume."""
    from rich.console import Console

    from pv_data.asking.asker import Stopped
    from pv_data.run.config import compose
    from pv_data.run.finalize import EXPORT
    from pv_data.run.pipeline import run
    from pv_data.run.plan import plan

    console = Console(stderr=True)
    try:
        settings = compose(config, overrides or [])
        if dry_run:
            plan(settings, Console())
            return
        folder = run(settings, console, redo=redo, export_only=export_only)
    except Stopped as error:
        said = (
            f"Stopped: {error}. Answers are kept. Run the same command to continue, or with --export-only to "
            "export what has a label so far."
        )
        console.print(said, style="yellow", markup=False)
        raise typer.Exit(3) from None
    except (PvRlError, OSError) as error:  # a full disk, a folder that cannot be written
        console.print(f"Error: {visible(str(error))}", style="red", markup=False)
        raise typer.Exit(2) from None
    typer.echo(f"{folder / EXPORT}: report/labels.md, dataset/README.md (the card), verl/*.parquet")


Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of pv-data run.")]


def draw(
    run: Run,
    sheet: Annotated[
        Path, typer.Option("--out", help="CSV file to write: one proof a row, without its label.")
    ],
    pilot: Annotated[
        float,
        typer.Option(help="Share of each source's questions to draw proofs from; 1 for all."),
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of pilot and sample. Keep it for all rounds of a run.")] = 0,
) -> None:
    """Write the proofs to read next: the current round of each slice that is neither accepted nor discarded."""
    from pv_data.run.audit import draw_sheet

    with errors_to_exit():
        drawn = draw_sheet(run, sheet, pilot=pilot, seed=seed)
    typer.echo(f"{len(drawn.proofs)} proofs to read in {sheet}: fill in `right` with yes or no")
    for one in drawn.short:
        more = "all questions have too few" if one.enough is None else f"--pilot {one.enough:g} has them"
        typer.echo(
            f"{one.slice}: round {one.round} needs {one.missing} more proofs, and a pilot of {pilot:g} has "
            f"{one.there}; {more}"
        )
    typer.echo(
        f"with the proofs read before, {drawn.touched} of {drawn.questions} questions are marked: they go to the test "
        "set, unless split.hold_out_audited=false"
    )
    if drawn.touched == drawn.questions:
        typer.echo("Warning: these are all questions, so nothing is left for training", err=True)


def record(
    run: Run,
    sheet: Annotated[Path, typer.Argument(help="The sheet, filled in.")],
    auditor: Annotated[str, typer.Option(help="Who read them.")],
) -> None:
    """Add the marks of a sheet to the run."""
    from pv_data.run.audit import record_sheet

    with errors_to_exit():
        count = record_sheet(run, sheet, auditor)
    typer.echo(f"{count} marks recorded")


def status(
    run: Run,
    confidence: Annotated[float, typer.Option(help="Confidence of a bound; above 0 and below 1.")] = 0.90,
    above: Annotated[
        float | None,
        typer.Option(help="List the slices shown to agree in more than this, all at once (Holm)."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to this file; - for standard output.")
    ] = None,
) -> None:
    """Print the verdict on each slice, and what the marks prove."""
    from rich.console import Console

    from pv_data.audit import prove, read_audit, slices_above
    from pv_data.audit.tables import print_proven
    from pv_data.run.finalize import discard_override

    with errors_to_exit():
        audit = read_audit(run)
        proven = prove(audit.marks.values(), audit.sizes, confidence)
        document = proven.document()
        counts = {name: (one.agree, one.checked) for name, one in proven.audited.slices.items()}
        shown = None if above is None else sorted(slices_above(counts, above, confidence))
        if shown is not None:
            document["above"] = {"threshold": above, "slices": shown}
        text = json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"
        if json_file is not None and str(json_file) == "-":
            typer.echo(text, nl=False)
            return
        if json_file is not None:
            check_target("--json", json_file)
            write_atomically(json_file, lambda file: file.write_text(text, "utf-8", "replace"))
    console = Console()
    print_proven(proven, console if console.is_terminal else Console(width=130))
    if shown is not None:
        typer.echo(f"above {above:g}, all at once with {confidence:g} (Holm): {', '.join(shown) or 'none'}")
    if proven.discarded:
        typer.echo(f"leave them out of the set: {discard_override(proven.discarded)}")
