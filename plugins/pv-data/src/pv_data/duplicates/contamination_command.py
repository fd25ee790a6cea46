"""`pv-data contamination`: the report of a run against test sets, and the sheet of pairs for a person to decide."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated

import typer

from pv_data.duplicates.blind import THRESHOLD
from pv_data.duplicates.contamination_report import Contamination
from pv_data.records import Problem
from pv_rl.errors import ConfigError, DataError
from pv_rl.exits import errors_to_exit

__all__ = ["contamination_command", "read_decisions", "write_pairs"]

DECISIONS = ("same", "different")
IDS = ("problem_id", "test_problem_id")
COLUMNS = (
    *("decision", "similarity", "cosine", "text", "test_text", "shared", "only_here", "only_there"),
    *("source", "native_id", "split", "test_set", "test_id", *IDS),
)
"""Of the sheet: fields of `Hit`."""
CELL = 20_000
"""Characters of a cell: spreadsheets take up to 32,767."""


def write_pairs(path: Path, found: Contamination) -> None:
    """Write all pairs as CSV, those to decide first. The column `decision` is for a person: `same` or `different`."""
    from pv_data.export.distribution import no_formula
    from pv_judge.files import write_atomically

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in found.rows():
        cells = (row[column] for column in COLUMNS)
        writer.writerow(
            "" if cell is None else f"{cell:.4f}" if isinstance(cell, float) else no_formula(str(cell)[:CELL])
            for cell in cells
        )
    write_atomically(path, lambda file: file.write_text(text.getvalue(), encoding="utf-8", errors="replace"))


def read_decisions(path: Path) -> dict[tuple[str, str], str]:
    """The decisions of a sheet, by the ids of the problem and of the test problem; none if there is no such file.

    Raises:
        DataError: it is no sheet of pairs, or a decision is neither of the two.
    """
    from pv_judge.rowfiles import open_rows

    found: dict[tuple[str, str], str] = {}
    if not path.exists():
        return found
    for row in open_rows(path, suffixes=(".csv",)).rows(["decision", *IDS]):
        said, one, test = (str(row.values[name] or "").strip() for name in ("decision", *IDS))
        if said and said.lower() not in DECISIONS:
            raise DataError(f"{row.where}: decision is {said!r}; expected same, different, or an empty cell")
        if said and found.setdefault((one, test), said.lower()) != said.lower():
            raise DataError(f"{row.where}: the pair {one}, {test} is decided twice, and differently")
    return found


def contamination_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run of pv-data run.")],
    against: Annotated[
        list[str], typer.Option(help="Test set as KIND:PATH, where KIND is a source. Can be repeated.")
    ],
    out: Annotated[Path | None, typer.Option(help="Markdown file; the terminal if not given.")] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of all pairs with both texts. Fill in its column decision (same or different) and run the "
            "command again: the decisions count, and stay in the file."
        ),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            help="Similarity from which a pair counts; those up to 0.12 below are shown to a person."
        ),
    ] = THRESHOLD,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL@URL",
            help="OpenAI-compatible server whose embeddings show further pairs, such as bge-m3@http://localhost:8000/v1.",
        ),
    ] = None,
    api_key_env: Annotated[
        str, typer.Option(help="Environment variable with the key of the embedding server.")
    ] = "",
) -> None:
    """List the problems of a run that are in named test sets, reworded or not.

    Example: pv-data contamination runs/mine --against opc:data/opc
    """
    from pv_data.duplicates.contamination import contamination, problems_of
    from pv_data.duplicates.embeddings import parse_endpoint
    from pv_data.run.finalize import EXPORT
    from pv_data.run.manifest import check_run
    from pv_data.table import column, read_rows
    from pv_judge.files import check_target, write_atomically

    with errors_to_exit():
        check_run(run)
        for option, path in (("--out", out), ("--pairs", pairs)):
            if path is not None:
                check_target(option, path)
        sets = {}
        for one in against:
            kind, found, path = one.partition(":")
            if not found:
                raise ConfigError(f"--against {one}: give KIND:PATH, for example processbench:gsm8k.jsonl")
            sets[f"{kind} {Path(path).name}"] = problems_of(kind, Path(path))
        decisions = read_decisions(pairs) if pairs else {}
        triples = run / EXPORT / "qpc"
        report = contamination(
            read_rows(run / "problems", Problem),
            sets,
            threshold=threshold,
            embeddings=parse_endpoint(embeddings, api_key_env) if embeddings else None,
            decisions=decisions,
            split_of=dict(zip(column(triples, "problem_id"), column(triples, "split"), strict=True)),
        )
        if pairs:
            lost = decisions.keys() - {(row["problem_id"], row["test_problem_id"]) for row in report.rows()}
            if lost:
                raise DataError(
                    f"{pairs} has {len(lost)} decisions on problems that are not in this run and these test sets, and "
                    "would lose them. Give the same run and test sets, or another file to --pairs"
                )
            write_pairs(pairs, report)
        text = report.to_markdown()
        if out is None:
            typer.echo(text)
        else:
            write_atomically(out, lambda file: file.write_text(text, encoding="utf-8", errors="replace"))
