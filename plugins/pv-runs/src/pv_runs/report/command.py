"""What `pv-rl report` does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from pv_judge.pages.markdown_file import to_markdown
from pv_judge.pages.web_page import to_html
from pv_rl.errors import DataError
from pv_rl.files import write_together
from pv_runs.report.content import content
from pv_runs.report.document import document
from pv_runs.report.figure import check_figure, draw
from pv_runs.report.summary import summarise
from pv_runs.report.terminal import print_report

__all__ = ["report"]


def report(folder: Path, *, out: Path | None = None, last: int = 5, by: Sequence[str] = ()) -> None:
    """Read the runs of `folder`, print a table and write report.md, .png, .html and .json, all of them or none.

    Args:
        folder: of a sweep, of a run, or of folders of these.
        out: where to write, made if need be; `folder/report` without it.
        last: steps over which a final value of training is a mean, 1 or more.
        by: keys that tell settings apart, see `label_runs`.

    Raises:
        PvRlError: something given or found is not what it should be.
        OSError: a file cannot be read or written.
    """
    target = out or folder / "report"
    if out is not None and not out.parent.is_dir():
        raise DataError(
            f"--out {out}: there is no folder {out.parent}; make it first, or name another folder"
        )
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is no folder, so nothing can be written there; name another with --out")
    check_figure()
    with Console(stderr=True).status("reading runs"):
        summary = summarise(folder, last=last, by=by)
        picture = draw(summary)
    blocks = list(content(summary))
    files = {
        "report.png": picture,
        "report.md": to_markdown(blocks, "report.png").encode(),
        "report.html": to_html(blocks, picture).encode(),
        "report.json": (json.dumps(document(summary), allow_nan=False) + "\n").encode(),
    }
    target.mkdir(exist_ok=True)
    write_together({target / name: data for name, data in files.items()})
    console = _console()
    print_report(summary, console)
    for name in files:
        console.print(f"wrote {target / name}", markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    """Standard output: as wide as the terminal, or as wide as need be where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=1000)
