"""Commands `pv-data run` and `pv-data audit draw | record | status`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pv_data.shell import config_names
from pv_judge.files import check_target, write_atomically
from pv_judge.pages.text import plural
from pv_rl.errors import DataError
from pv_rl.exits import errors_to_exit

__all__ = ["draw", "record", "run_command", "status"]


def run_command(
    config: Annotated[
        str,
        typer.Argument(
            help="A YAML file, or the name of a config that comes with pv-data.", autocompletion=config_names
        ),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Hydra's overrides.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print what the run would still ask and cost. Asks and writes nothing."
        ),
    ] = False,
    redo: Annotated[
        str,
        typer.Option(
            help="Do this stage and all later ones again: collect, generate or judge.",
            autocompletion=lambda: ["collect", "generate", "judge"],
        ),
    ] = "",
    export_only: Annotated[
        bool, typer.Option("--export-only", help="Export what has a label so far. Asks nothing.")
    ] = False,
) -> None:
    """Build a set: collect, generate, judge, split, export. Run the same command again to resume.

    Example: pv-data run mine.yaml split.test=0.1 --dry-run
    """
    from rich.console import Console

    from pv_data.asking.asker import Stopped
    from pv_data.run.config import compose
    from pv_data.run.finalize import EXPORT
    from pv_data.run.pipeline import run
    from pv_data.run.plan import plan
    from pv_judge.pages.terminal import standard_output

    console = Console(stderr=True)
    with errors_to_exit():
        settings = compose(config, overrides or [])
        if dry_run:
            plan(settings, standard_output(), redo=redo)
            return
        try:
            folder = run(settings, console, redo=redo, export_only=export_only)
        except Stopped as error:
            raise Stopped(
                f"Stopped: {error}. Answers are kept. Run the same command to continue, or with --export-only to "
                "export what has a label so far."
            ) from error
    typer.echo(f"{folder / EXPORT}: report/labels.md, dataset/README.md (the card), verl/*.parquet")


Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of pv-data run.")]


class Tool(StrEnum):
    """What people read and mark proofs in."""

    sheet = "sheet"
    label_studio = "label-studio"


FEW = 5
"""Ids that a line names."""


def draw(
    run: Run,
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="File to write, without labels: a CSV sheet, or tasks (.json) for Label Studio."
        ),
    ],
    to: Annotated[Tool, typer.Option("--to", help="What the proofs are read in.")] = Tool.sheet,
    third: Annotated[
        bool,
        typer.Option(
            "--third", help="The proofs on which two readers differ, with their reasons, for a third person."
        ),
    ] = False,
    pilot: Annotated[
        float,
        typer.Option(
            help="Share of each source's questions to draw proofs from; 1 for all. Keep it for all rounds of a run."
        ),
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of pilot and sample. Keep it for all rounds of a run.")] = 0,
) -> None:
    """Write the proofs to read next: the current round of each slice that is neither accepted nor discarded.

    Example: pv-data audit draw runs/mine --out sheet.csv
    """
    from pv_data.run.audit import draw_sheet
    from pv_data.run.label_studio import draw_tasks

    with errors_to_exit():
        if to is Tool.sheet:
            drawn, how = (
                draw_sheet(run, out, third=third, pilot=pilot, seed=seed),
                "fill in `right` with yes, no or cannot tell",
            )
        else:
            drawn = draw_tasks(run, out, third=third, pilot=pilot, seed=seed)
            how = (
                f"import them into a project of Label Studio with the labeling configuration {out.with_suffix('.xml')}"
                + ("" if third else ", and into a second project for the second annotator")
            )
    if not drawn.proofs:
        why = "no proof waits for a third reader" if third else "all slices are accepted or discarded"
        if drawn.short:
            why = f"all proofs of a pilot of {pilot:g} have been read"
        elif drawn.disputed:
            why = "all others have been read"
        typer.echo(f"no proofs to read; no file was written: {why}")
    else:
        typer.echo(f"{plural(len(drawn.proofs), 'proof')} to read in {out}: {how}")
    if drawn.again:
        some = ", ".join(drawn.again[:FEW]) + (", ..." if len(drawn.again) > FEW else "")
        typer.echo(
            f"{len(drawn.again)} of these proofs {'was' if len(drawn.again) == 1 else 'were'} read before "
            f"and not settled ({some}): give {'it' if len(drawn.again) == 1 else 'them'} to another person"
        )
    if drawn.disputed:
        typer.echo(
            f"{plural(drawn.disputed, 'proof')} on which readers differ: draw for a third person with --third"
        )
    if drawn.short and drawn.earlier:
        typer.echo(
            f"the proofs read before are of a pilot of {drawn.earlier:g} (with --seed {seed}): give the --pilot and "
            "--seed of the rounds before"
        )
    for one in drawn.short:
        more = "all questions have too few" if one.enough is None else f"--pilot {one.enough:g} has them"
        typer.echo(
            f"{one.slice}: round {one.round} needs {plural(one.missing, 'more proof')}, and a pilot of {pilot:g} has "
            f"{one.there}; {more}"
        )
    typer.echo(
        f"with the proofs read before, {drawn.touched} of {plural(drawn.questions, 'question')} are marked: "
        "they go to the test "
        "set, unless split.hold_out_audited=false"
    )
    if drawn.touched == drawn.questions:
        typer.echo("Warning: these are all questions, so nothing is left for training", err=True)


def record(
    run: Run,
    files: Annotated[
        list[Path], typer.Argument(help="A sheet, filled in, or JSON exports of Label Studio (.json).")
    ],
    auditor: Annotated[
        list[str] | None,
        typer.Option(
            help="Who read the sheet. For Label Studio ID=NAME, once for each user; without it, `user ID`."
        ),
    ] = None,
    older: Annotated[
        bool, typer.Option("--older", help="Take an export of a draw that is not the latest of the run.")
    ] = False,
) -> None:
    """Add the marks of a sheet, or of exports of Label Studio, to the run.

    Example: pv-data audit record runs/mine sheet.csv --auditor anna
    """
    from pv_data.run.audit import empty_rows, record_sheet
    from pv_data.run.label_studio_export import record_export

    exports, given = [file for file in files if file.suffix.lower() == ".json"], auditor or []
    with errors_to_exit():
        if not exports:
            if len(files) > 1 or len(given) != 1:
                raise DataError("give one sheet at a time, and with --auditor who read it")
            recorded, empty = record_sheet(run, files[0], given[0]), empty_rows(files[0])
            more = f"; {plural(recorded.replaced, 'mark')} replaced" if recorded.replaced else ""
            more += f"; {plural(empty, 'row')} {'is' if empty == 1 else 'are'} empty" if empty else ""
            typer.echo(f"{plural(recorded.marks, 'mark')} recorded{more}")
            return
        if len(exports) < len(files):
            raise DataError(
                f"{', '.join(map(str, files))}: give a sheet, or exports of Label Studio (.json), not both"
            )
        names = dict(one.split("=", 1) for one in given if "=" in one)
        if len(names) < len(given):
            raise DataError(
                f"--auditor {' '.join(given)}: give ID=NAME for each user of Label Studio, each once"
            )
        taken = record_export(run, exports, names, older=older)
    typer.echo(f"{plural(taken.recorded, 'mark')} recorded, {taken.unchanged} recorded before")
    if taken.absent:
        typer.echo(f"no mark by the users {', '.join(taken.absent)}, whom --auditor names")
    for why, number in sorted(taken.left_out.items()):
        typer.echo(f"left out: {number} {why}")
    typer.echo(
        f"of {plural(taken.drawn, 'proof')} drawn: "
        + ", ".join(
            f"{number} read by {readers or 'nobody'}" for readers, number in sorted(taken.read_by.items())
        )
    )


def status(
    run: Run,
    confidence: Annotated[float, typer.Option(help="Confidence of a bound, 0 to 1.")] = 0.90,
    above: Annotated[
        float | None,
        typer.Option(help="List the slices shown to agree in more than this, all at once (Holm)."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all numbers to this file; - is stdout.")
    ] = None,
) -> None:
    """Print the verdict on each slice, and what the marks prove.

    Example: pv-data audit status runs/mine
    """
    from pv_data.audit import prove, read_audit, slices_above
    from pv_data.audit.marks import latest_marks
    from pv_data.audit.readers import readers
    from pv_data.audit.tables import print_proven, print_readers
    from pv_data.run.finalize import discard_override
    from pv_data.run.reading_list import all_marks
    from pv_judge.pages.terminal import standard_output

    with errors_to_exit():
        audit, people = read_audit(run), readers(latest_marks(all_marks(run)))
        proven = prove(audit.marks.values(), audit.sizes, confidence)
        document = proven.document() | {"readers": people.document()}
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
    console = standard_output()
    print_proven(proven, console)
    print_readers(people, console)
    if shown is not None:
        typer.echo(f"above {above:g}, all at once with {confidence:g} (Holm): {', '.join(shown) or 'none'}")
    if proven.discarded:
        typer.echo(f"ignore the panel's labels of the discarded slices: {discard_override(proven.discarded)}")
        typer.echo(
            "rows there with a label of people or of the source stay; split.train_labels=[panel] drops those of "
            "train too, and uses the panel's labels alone in all slices"
        )
