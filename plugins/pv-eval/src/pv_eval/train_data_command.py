"""Command `pv-eval train-data`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pv_judge.pages.text import plural
from pv_rl.exits import errors_to_exit

__all__ = ["train_data"]


def train_data(
    set_spec: Annotated[
        str,
        typer.Option("--set", metavar="NAME:PATH", show_default=False, help="A set, as for `pv-eval run`."),
    ],
    out: Annotated[Path, typer.Option(show_default=False, help="Folder for train.parquet and test.parquet.")],
    form: Annotated[
        str,
        typer.Option("--format", help="Verdict format to train on: grade, first_error, verdict."),
    ] = "grade",
    format_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Option of the format, for example grades='[0, 0.5, 1]'. Repeatable."
        ),
    ] = None,
    set_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the set. Repeatable.")
    ] = None,
    prompt: Annotated[
        Path | None, typer.Option(help="A prompt file of your own.", show_default="the format's")
    ] = None,
    test: Annotated[float, typer.Option(help="Share of the questions in test.parquet.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split.")] = 0,
) -> None:
    """Write a labelled set as verl data for `reward=FORMAT`: problem, proof, truth, and the format's prompt.

    Example: pv-eval train-data --set opc:data/opc --out data
    """
    from pv_data.export.prompt import VerifierPrompt
    from pv_data.splits import SplitRules
    from pv_eval.sets.catalogue import open_set
    from pv_eval.train_data import write_train_data
    from pv_judge.pages.text import plain
    from pv_judge.scoring.command import read_options
    from pv_verdicts import build_format

    with errors_to_exit():
        built = build_format(form, read_options(None, format_option or []))
        split = SplitRules(test=test, seed=seed)
        found = open_set(set_spec, read_options(None, set_option or []))
        counts = write_train_data(out, found, built, VerifierPrompt.load(prompt or built.prompt), split)
    for name in ("train", "test"):
        if rows := counts.pop(name, 0):
            typer.echo(f"wrote {out / name}.parquet: {plural(rows, 'row')}")
    left = {**found.left_out, **counts}
    if left:
        typer.echo(
            "left out: " + "; ".join(f"{plain(reason, 80)}: {number}" for reason, number in left.items())
        )
