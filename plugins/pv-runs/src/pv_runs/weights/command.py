"""Command `pv-rl weights`: reads rollouts, computes what each mode weighs, prints and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from pv_judge.files import check_target, write_atomically
from pv_judge.pages.figure import check_plot
from pv_judge.pages.terminal import print_blocks, print_line, standard_output
from pv_judge.pages.writing import to_json
from pv_rl.errors import DataError
from pv_runs.weights.figure import draw
from pv_runs.weights.output import blocks, document
from pv_runs.weights.reading import read_rollouts
from pv_runs.weights.rollouts import read_lengths
from pv_runs.weights.summary import DEFAULT_MODES, summarise

__all__ = ["show_weights"]


def show_weights(
    *,
    lengths: Sequence[str] = (),
    rollouts: Path | None = None,
    modes: Sequence[str] = (),
    step: int | None = None,
    group_column: str | None = None,
    length_column: str | None = None,
    tokenizer: str | None = None,
    plot: Path | None = None,
    json_file: str | None = None,
) -> None:
    """Read, compute, and print to standard output; write what is asked for. Arguments as in the command's help.

    Raises:
        PvRlError: something given is not what it should be.
        OSError: a file cannot be read or written.
    """
    if bool(lengths) == (rollouts is not None):
        raise DataError(
            "give either --lengths 1,2,5 or --rollouts PATH"
            + (", not both" if lengths else ", to have something to weigh")
        )
    of_files = {
        "--step": step,
        "--group-column": group_column,
        "--length-column": length_column,
        "--tokenizer": tokenizer,
    }
    for option, value in of_files.items():
        if lengths and value is not None:
            raise DataError(f"{option} is for --rollouts PATH; leave it out with --lengths")
    if plot is not None:
        check_plot(plot)
    to_stdout = json_file == "-"
    if json_file is not None and not to_stdout:
        check_target("--json", Path(json_file))

    errors = Console(stderr=True)
    with errors.status("reading and weighing"):
        if rollouts is None:
            given = read_lengths(lengths)
        else:
            given = read_rollouts(
                rollouts,
                step=step,
                group_column=group_column,
                length_column=length_column,
                tokenizer=tokenizer,
            )
        summary = summarise(given, modes or DEFAULT_MODES)

    if plot is not None:
        draw(summary, plot)
    if json_file is not None:
        text = to_json(document(summary))
        if to_stdout:
            print(text, end="")  # noqa: T201 - the document, not a message
        else:
            write_atomically(Path(json_file), lambda file: file.write_text(text, encoding="utf-8"))
    if to_stdout:
        for note in summary.notes:
            print_line(errors, note)
        return
    console = standard_output()
    print_blocks(blocks(summary), console)
    for written in (plot, json_file):
        if written is not None:
            print_line(console, f"wrote {written}")
