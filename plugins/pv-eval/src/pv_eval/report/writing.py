"""All files of a report, put in place together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pv_eval.intervals import Bootstrap
from pv_eval.report.charts import draw_charts
from pv_eval.report.content import content
from pv_eval.report.document import document
from pv_eval.report.markdown_file import to_markdown
from pv_eval.report.page import to_html
from pv_eval.report.summary import Summary, summarise
from pv_rl.errors import DataError
from pv_rl.files import write_together

__all__ = ["write_report"]


def write_report(
    folders: Sequence[Path], out: Path, how: Bootstrap | None = None, *, cases: int = 3
) -> tuple[Summary, list[Path]]:
    """Read runs, measure, and write report.html, .md, .json and a .png a figure; all of them or none.

    Args:
        folders: runs on disk; the first is what others are compared with.
        out: folder, made if need be; its parent has to be there.
        how: of the intervals.
        cases: see `summarise`.

    Returns:
        What was measured, and the files.

    Raises:
        PvRlError: something given or found is not what it should be.
        OSError: a file cannot be read or written.
    """
    if not folders:
        raise DataError("a report is of one run or more; none was given")
    for folder in folders:
        if not folder.is_dir():
            raise DataError(
                f"there is no folder {folder}; a run is a folder with pairs.parquet, votes.parquet, run.json"
            )
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is no folder, so nothing can be written there; name another")
    if not out.parent.is_dir():
        raise DataError(
            f"there is no folder {out.parent} to make {out.name} in; make it first, or name another"
        )
    summary = summarise(folders, how or Bootstrap(), cases=cases)
    charts = draw_charts(summary.entries)
    blocks = list(content(summary, charts))
    text = json.dumps(document(summary), allow_nan=False, ensure_ascii=False)
    files = {
        "report.html": to_html(blocks, charts).encode("utf-8", "replace"),
        "report.md": to_markdown(blocks).encode("utf-8", "replace"),
        "report.json": (text + "\n").encode("utf-8", "replace"),
        **{f"{name}.png": drawn.on_white for name, drawn in charts.items()},
    }
    out.mkdir(exist_ok=True)
    write_together({out / name: data for name, data in files.items()})
    return summary, [out / name for name in files]
