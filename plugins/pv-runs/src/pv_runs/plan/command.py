"""Command `pv-rl plan`: prints a plan and writes it as JSON."""

from __future__ import annotations

from pathlib import Path

from pv_judge.pages.terminal import print_blocks, print_line, standard_output
from pv_judge.pages.writing import to_json
from pv_rl.files import check_target, write_atomically
from pv_runs.plan.output import blocks, document
from pv_runs.plan.planning import Plan

__all__ = ["show"]


def show(plan: Plan, *, json_file: str | None = None) -> None:
    """Print to standard output.

    Args:
        plan: what to show.
        json_file: a file that gets all of it as JSON; `-` for standard output, in the place of the tables.

    Raises:
        DataError: the file cannot be written.
        OSError: so do others.
    """
    if json_file is not None:
        text = to_json(document(plan))
        if json_file == "-":
            print(text, end="")  # noqa: T201 - the document, not a message
            return
        check_target("--json", Path(json_file))
        write_atomically(Path(json_file), lambda file: file.write_text(text, encoding="utf-8"))
    console = standard_output(120)
    print_blocks(blocks(plan), console)
    if json_file is not None:
        print_line(console, f"wrote {json_file}")
