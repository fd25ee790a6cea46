"""Command `pv-eval grades`. It imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pv_rl.errors import ConfigError, DataError
from pv_rl.exits import errors_to_exit

if TYPE_CHECKING:
    from pv_eval.graded import Scale
    from pv_eval.votes import Pair, Vote

__all__ = ["grades"]


def grades(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files of grades (.jsonl, .json, .csv, .parquet), or runs of `pv-eval run --format grade`.",
            metavar="FILE...",
            show_default=False,
        ),
    ],
    points: Annotated[
        float | None, typer.Option(help="Full points.", show_default="the file's maximum")
    ] = None,
    allowed: Annotated[
        str | None,
        typer.Option(
            "--grades", metavar="G,G,...", help="Allowed grades, 0,0.5,1.", show_default="equal steps"
        ),
    ] = None,
    model_points: Annotated[
        float | None,
        typer.Option(help="Full points of the verifier's grades.", show_default="the human's; 1 for shares"),
    ] = None,
    accept: Annotated[
        float | None,
        typer.Option(help="Points from which a proof is accepted.", show_default="full points"),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Column of human, model, question, pair, proof, max or sample, where it has another name. Repeatable.",
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all numbers to this file.")] = None,
) -> None:
    """Compare a verifier's grades with a human's: MAE, quadratic weighted kappa, rank correlation, best-of-k.

    Example: pv-eval grades mine.jsonl --points 7 --accept 6
    """
    from pv_eval.grade_file import read_grades
    from pv_eval.graded import Graded, Scale, compare_with_first, evaluate_grades
    from pv_eval.intervals import Intervals
    from pv_eval.report.grade_tables import grade_blocks
    from pv_eval.run_files import read_run
    from pv_judge.files import write_atomically
    from pv_judge.pages.blocks import Items
    from pv_judge.pages.terminal import print_blocks, print_line, standard_output
    from pv_judge.pages.writing import to_json

    def read(path: Path) -> tuple[str, Sequence[Pair], Sequence[Vote], Scale, tuple[str, ...]]:
        """Name, pairs, votes, scale and notes of a file or a run."""
        if path.is_dir():
            pairs, votes, info = read_run(path)
            scale = Scale.of(info)
            if scale is None:
                raise DataError(f"{path} has no grades; make a run with `pv-eval run --format grade`")
            scale = scale if accept is None else replace(scale, accept=accept)
            return info.verifier, pairs, votes, scale, info.notes
        given = read_grades(
            path,
            points=points,
            grades=_numbers(allowed),
            model_points=model_points,
            accept=accept,
            columns=by_meaning(column or [], "human=expert_rating"),
        )
        return path.stem, given.pairs, given.votes, given.scale, given.notes

    with errors_to_exit():
        how = Intervals()
        found: dict[str, Graded] = {}
        verifiers: list[tuple[str, Sequence[Pair], Sequence[Vote], Scale]] = []
        notes: list[str] = []
        for path in files:
            name, pairs, votes, scale, of_it = read(path)
            name = name if name not in found else f"{name} ({len(found) + 1})"
            found[name] = evaluate_grades((pairs, votes), scale, how)
            verifiers.append((name, pairs, votes, scale))
            notes += [f"{name}: {note}" for note in of_it]
        console = standard_output()
        against, reasons = compare_with_first(verifiers, how)
        notes += reasons
        print_blocks([Items(notes), *grade_blocks(list(found.items()), against, terminal=True)], console)
        if json_file is not None:
            text = to_json({"notes": notes, "verifiers": found, "versus": against})
            write_atomically(json_file, lambda file: file.write_text(text, encoding="utf-8"))
            print_line(console, f"wrote {json_file}")


def _numbers(given: str | None) -> list[float] | None:
    if given is None:
        return None
    try:
        return [float(one) for one in given.split(",")]
    except ValueError as error:
        raise ConfigError(
            f"--grades is {given!r:.80}; expected numbers with commas, for example 0,0.5,1"
        ) from error


def by_meaning(given: Sequence[str], example: str) -> dict[str, str]:
    """The columns of `--column NAME=COLUMN`, by name.

    Raises:
        ConfigError: one is not of this form, or a name is given twice.
    """
    parts = [one.partition("=") for one in given]
    if odd := [one for one, (name, _, column) in zip(given, parts, strict=True) if not (name and column)]:
        raise ConfigError(f"--column is {odd[0]!r:.80}; expected NAME=COLUMN, for example {example}")
    names = [name for name, _, _ in parts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(
            f"--column {twice[0][:80]} is given twice; name one column, and write several votes as one row each"
        )
    return {name: column for name, _, column in parts}
