"""Table of the threshold-free numbers: AUROC, average precision and selective accuracy."""

from __future__ import annotations

from collections.abc import Sequence

from pv_eval.intervals import Estimate
from pv_eval.ranking import COVERAGES, Ranking
from pv_eval.report.summary import Entry
from pv_judge.pages.blocks import Column, Table
from pv_judge.pages.text import coefficient, estimate, percent

__all__ = ["ranking_table"]


def ranking_table(entries: Sequence[Entry]) -> Table:
    """A line a verifier and score."""
    lines = [(entry, by, found) for entry in entries for by, found in entry.evaluation.ranking.items()]
    columns: list[Column[tuple[Entry, str, Ranking]]] = [
        Column("verifier", lambda row: row[0].name, left=True),
        Column("score", lambda row: row[1], left=True),
        Column("AUROC", lambda row: _show(row[2].auroc)),
        Column("AUROC", lambda row: _show(row[2].auroc_within), "within a question"),
        Column("average precision", lambda row: _show(row[2].average_precision), "right proofs"),
        Column("average precision", lambda row: _show(row[2].average_precision_wrong), "wrong proofs"),
        *(
            Column(
                f"surest {100 * share:.0f} %",
                lambda row, share=share: _percent(row[2].selective[share]),
                "accuracy, %",
            )
            for share in COVERAGES
        ),
        Column("all coverages", lambda row: _percent(row[2].selective_area), "mean accuracy, %"),
    ]
    return Table.of(columns, lines)


def _show(found: Estimate) -> str:
    return estimate(found.value, found.low, found.high, coefficient)


def _percent(found: Estimate) -> str:
    return estimate(found.value, found.low, found.high, percent)
