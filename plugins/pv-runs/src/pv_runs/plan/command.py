"""What `pv-rl plan` prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from pv_rl.files import check_target, write_atomically
from pv_runs.plan.document import document
from pv_runs.plan.planning import Plan
from pv_runs.plan.table import print_plan

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
        text = json.dumps(document(plan), allow_nan=False, ensure_ascii=False) + "\n"
        if json_file == "-":
            print(text, end="")  # noqa: T201 - the document, not a message
            return
        check_target("--json", Path(json_file))
        write_atomically(Path(json_file), lambda file: file.write_text(text, encoding="utf-8"))
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=120)
    print_plan(plan, console)
    if json_file is not None:
        console.print(f"wrote {json_file}", markup=False, soft_wrap=True)
