"""The report as JSON: all numbers, no text of questions, proofs or traces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from pv_data import __version__
from pv_eval.report.paper import PAPER, paper_numbers
from pv_eval.report.summary import Case, Entry, Summary
from pv_eval.report.tables import sets

__all__ = ["FORMAT", "document"]

FORMAT = 1


def document(summary: Summary) -> dict[str, Any]:
    """A tree of plain values; null where a number is not defined.

    Keys: `format`, `pv_data` (version), `bootstrap`; `runs`, each with `name`, `info`, `evaluation` (see `Evaluation`),
    `best_of` and the names of the pairs in `worst`; `versus`, each with `first`, `second`, `comparison` or `reason`;
    `paper`, its title and printed numbers by set.
    """
    tree = {
        "format": FORMAT,
        "pv_data": __version__,
        "bootstrap": asdict(summary.how),
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
    return _plain(tree)


def _run(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "info": entry.info,
        "evaluation": entry.evaluation,
        "best_of": entry.best_of,
        "worst": {
            "accepted_wrong": _names(entry.accepted_wrong),
            "rejected_right": _names(entry.rejected_right),
        },
    }


def _names(cases: Sequence[Case]) -> list[str]:
    return [case.pair.pair_id for case in cases]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
