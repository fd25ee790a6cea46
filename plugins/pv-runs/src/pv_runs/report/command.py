"""Command `pv-rl report`: reads the runs of a sweep, prints a table and writes the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from pv_judge.pages.figure import check_figure
from pv_judge.pages.terminal import print_blocks, print_line, standard_output
from pv_judge.pages.writing import check_folder, write_pages
from pv_runs.measures import MEASURES, Measure
from pv_runs.report.content import PICTURE, content, document, printed
from pv_runs.report.figure import draw
from pv_runs.report.summary import summarise

__all__ = ["report"]


def report(
    folder: Path,
    *,
    out: Path | None = None,
    last: int = 5,
    by: Sequence[str] = (),
    measures: Sequence[Measure] = MEASURES,
) -> None:
    """Read the runs of `folder`, print a table and write report.md, .png, .html and .json, all of them or none.

    Args:
        folder: of a sweep, of a run, or of folders of these.
        out: where to write, created if need be; `folder/report` by default.
        last: steps over which a final value of training is a mean, 1 or more.
        by: keys that tell settings apart, see `label_runs`.
        measures: the columns.

    Raises:
        PvRlError: something given or found is not what it should be.
        OSError: a file cannot be read or written.
    """
    target = out or folder / "report"
    if out is not None or target.exists():
        check_folder(target)
    check_figure("pv-rl report")
    with Console(stderr=True).status("reading runs"):
        summary = summarise(folder, last=last, by=by, measures=measures)
        pictures = {PICTURE: draw(summary)}
    files = write_pages(target, content(summary), document(summary), pictures)
    console = standard_output()
    print_blocks(printed(summary), console)
    for file in files:
        print_line(console, f"wrote {file}")
