"""Report files of an evaluation: report.html, report.md, report.json and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pv_data import __version__
from pv_eval.intervals import Intervals
from pv_eval.report.cases import Case
from pv_eval.report.charts import draw_charts
from pv_eval.report.content import content
from pv_eval.report.paper import PAPER, paper_numbers
from pv_eval.report.summary import Entry, Group, Summary, summarise
from pv_eval.report.traces import FILE, draw_traces
from pv_eval.run_files import find_runs
from pv_judge.pages.writing import check_folder, write_pages
from pv_rl.errors import DataError

__all__ = ["FORMAT", "document", "write_report"]

FORMAT = 2
"""Version of report.json."""


def write_report(
    folders: Sequence[Path], out: Path, how: Intervals | None = None, *, cases: int = 3
) -> tuple[Summary, list[Path]]:
    """Read runs, measure, and write report.html, .md, .json, traces.html and a .png a figure; all of them or none.

    Args:
        folders: runs on disk, or folders of runs (see `find_runs`). Runs are compared within their set, with its first.
        out: folder, made if need be; its parent has to be there.
        how: of the intervals.
        cases: see `summarise`; with 0 no text of the set or of a trace is written, so traces.html is not either.

    Returns:
        What was measured, and the files.

    Raises:
        PvRlError: something given or found is not what it should be.
        OSError: a file cannot be read or written.
    """
    if not folders:
        raise DataError("no run was given; give the folder of one run or more")
    check_folder(out)
    runs = find_runs(folders)
    summary = summarise(runs, how or Intervals(), cases=cases)
    charts = {name: chart for group in summary.groups for name, chart in draw_charts(group).items()}
    traces = {FILE: draw_traces(summary)} if cases else {}
    return summary, write_pages(out, content(summary), document(summary), charts, others=traces)


def document(summary: Summary) -> dict[str, Any]:
    """A tree of plain values; null where a number is not defined.

    Keys: `format`, `pv_data` (version), `intervals`; `sets`, each with `name`, `set_name` and the names of its `runs`
    (the first is the base of comparison, each is unique in its set); `runs`, each with its `set`, `name`, `info`,
    `evaluation` (see `Evaluation`), `best_of`, `grades` (see `Graded`), `first_errors` (see `Steps`) and the names of
    the pairs in `worst`; `versus`, each with `set`, `first`, `second`, `comparison` and `differ_most`; `grades_versus`,
    each with `set`, `first`, `second` and `comparison` (see `GradeComparison`); `paper`, its title and printed numbers
    by set name.
    """
    return {
        "format": FORMAT,
        "pv_data": __version__,
        "intervals": summary.how,
        "sets": [
            {
                "name": group.name,
                "set_name": group.set_name,
                "runs": [entry.name for entry in group.entries],
            }
            for group in summary.groups
        ],
        "runs": [_run(group, entry) for group in summary.groups for entry in group.entries],
        "versus": [
            {
                "set": group.name,
                "first": group.first.name,
                "second": versus.second.name,
                "comparison": versus.comparison,
                "differ_most": [
                    {"pair_id": split.first.pair.pair_id, "gain": split.gain} for split in versus.splits
                ],
            }
            for group in summary.groups
            for versus in group.versus
        ],
        "grades_versus": [
            {"set": group.name, **vars(versus)} for group in summary.groups for versus in group.grades_versus
        ],
        "paper": {
            "title": PAPER,
            "avg8_percent": {group.set_name: paper_numbers(group.set_name) for group in summary.groups},
        },
    }


def _run(group: Group, entry: Entry) -> dict[str, Any]:
    return {
        "set": group.name,
        "name": entry.name,
        "info": entry.info,
        "evaluation": entry.evaluation,
        "best_of": entry.best_of,
        "grades": entry.graded,
        "first_errors": entry.steps,
        "worst": {
            "accepted_wrong": _names(entry.accepted_wrong),
            "rejected_right": _names(entry.rejected_right),
        },
    }


def _names(cases: Sequence[Case]) -> list[str]:
    return [case.pair.pair_id for case in cases]
