"""Command `pv-eval sets`: lists the sets, or tries one on a file. It asks no verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pv_rl.errors import DataError
from pv_rl.exits import errors_to_exit

if TYPE_CHECKING:
    from pv_judge.pages.blocks import Table

__all__ = ["sets"]

LONGEST = 6000
"""Characters of the prompt that are shown."""


def sets(
    try_spec: Annotated[
        str,
        typer.Option(
            "--try",
            metavar="NAME:PATH",
            show_default=False,
            help="Read this file: counts, rows left out, and the first pair as the verifier sees it.",
        ),
    ] = "",
    set_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="With --try: option of the set. Repeatable."),
    ] = None,
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            help="With --try: the verdict format of the prompt.",
            show_default="that of the set's finest truth",
        ),
    ] = "",
) -> None:
    """List the sets; or try one on a file, and fail where the file is not the published one.

    Example: pv-eval sets --try proofbench:train.parquet
    """
    from pv_eval.sets.published import table_of_sets
    from pv_judge.pages.terminal import print_blocks, standard_output

    if not try_spec and not (set_option or format_name):
        print_blocks([_narrow(table_of_sets())], standard_output())
        return
    with errors_to_exit():
        if fault := _try(try_spec, set_option or [], format_name):
            raise DataError(fault)


def _narrow(table: Table) -> Table:
    """The set and all that is known of it: nine columns do not fit into a terminal."""
    from pv_judge.pages.blocks import Column, Table

    first, _, *others = (column.title for column in table.columns)

    def known(row: list[str]) -> str:
        return "; ".join(
            [row[1], *(f"{title}: {cell}" for title, cell in zip(others, row[2:], strict=True) if cell)]
        )

    columns = [
        Column(first, lambda row: row[0], left=True),
        Column("what is known", known, left=True, wrap=True),
    ]
    return Table.of(columns, table.rows)


def _try(spec: str, settings: list[str], format_name: str) -> str:
    """Print what is read; returns how it differs from the published set."""
    from pv_data.export.prompt import VerifierPrompt
    from pv_eval.sets.base import messages_of
    from pv_eval.sets.catalogue import open_set
    from pv_eval.sets.published import published
    from pv_judge.pages.text import plain, visible
    from pv_judge.scoring.command import read_options
    from pv_rl.errors import ConfigError
    from pv_verdicts import build_format

    if not spec:
        raise ConfigError("--set-option and --format go with --try NAME:PATH; give the file")
    options = read_options(None, settings)
    found = open_set(spec, options)
    entry = published().get(spec.partition(":")[0])
    for sentence in found.describe():
        typer.echo(plain(sentence, 4000))
    if entry and entry.page:
        paper = f", arXiv {entry.paper}" if entry.paper else ""
        typer.echo(f"Published at {entry.page}{paper}; licence: {entry.licence or 'not found'}.")
    pair = found.pairs[0]
    finest = (
        "first_error" if pair.first_error is not None else "grade" if pair.grade is not None else "verdict"
    )
    form = build_format(format_name or finest)
    messages = messages_of(pair, VerifierPrompt.load(form.prompt), form)
    truth = {"label": pair.label, "grade": pair.grade, "first_error": pair.first_error}
    known = ", ".join(f"{name}={value}" for name, value in truth.items() if value is not None)
    text = messages[-1]["content"]
    more = f"\n... ({len(text) - LONGEST:,} more characters)" if len(text) > LONGEST else ""
    typer.echo(f"\nThe first pair, {plain(pair.pair_id, 80)} ({known}), in the format {form.name}:\n")
    typer.echo(visible(text[:LONGEST] + more))
    return entry.differences(found.counts) if entry and not options else ""
