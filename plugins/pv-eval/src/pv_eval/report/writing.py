"""Report files of an evaluation: report.html, report.md, report.json and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pv_data import __version__
from pv_eval.intervals import Bootstrap
from pv_eval.report.cases import Case
from pv_eval.report.charts import draw_charts
from pv_eval.report.content import content
from pv_eval.report.paper import PAPER, paper_numbers
from pv_eval.report.summary import Entry, Summary, summarise
from pv_eval.report.tables import sets
from pv_judge.pages.writing import check_folder, write_pages
from pv_rl.errors import DataError

__all__ = ["FORMAT", "document", "write_report"]

FORMAT = 1


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
        raise DataError("no run was given; give the folder of one run or more")
    for folder in folders:
        if not folder.is_dir():
            raise DataError(
                f"there is no folder {folder}; a run is a folder with pairs.parquet, votes.parquet, run.json"
            )
    check_folder(out)
    summary = summarise(folders, how or Bootstrap(), cases=cases)
    charts = draw_charts(summary.entries)
    return summary, write_pages(out, content(summary, charts), document(summary), charts)


def document(summary: Summary) -> dict[str, Any]:
    """A tree of plain values; null where a number is not defined.

    Keys: `format`, `pv_data` (version), `bootstrap`; `runs`, each with `name`, `info`, `evaluation` (see `Evaluation`),
    `best_of`, `grades` (see `Graded`), `first_errors` (see `Steps`) and the names of the pairs in `worst`; `versus`,
    each with `first`, `second`, `comparison` or `reason`; `paper`, its title and printed numbers by set.
    """
    return {
        "format": FORMAT,
        "pv_data": __version__,
        "bootstrap": summary.how,
        "runs": [_run(entry) for entry in summary.entries],
        "versus": [
            {
                "first": summary.entries[0].name,
                "second": versus.second.name,
                "comparison": versus.comparison,
                "reason": versus.reason,
                "differ_most": [
                    {"pair_id": split.first.pair.pair_id, "gain": split.gain} for split in versus.splits
                ],
            }
            for versus in summary.versus
        ],
        "paper": {"title": PAPER, "avg8_percent": {name: paper_numbers(name) for name in sets(summary)}},
    }


def _run(entry: Entry) -> dict[str, Any]:
    return {
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
