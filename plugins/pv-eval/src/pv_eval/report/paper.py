"""Printed numbers of the paper, the one source of them here: `paper_numbers.csv`, a line a printed number.

They are copied as printed from the six result tables of "ProofVerifier: A Scalable, Diversity-Driven Framework for
Natural-Language Proof Verification". Accuracies are Avg@8 in percent (of wrong proofs only, for the error types), gains
and drops are points, all without intervals; its curated set is not public.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["BASE", "ODD", "PAPER", "RIGHT", "SIZES", "VERIFIER", "PaperNumber", "paper_numbers", "printed"]

PAPER = "ProofVerifier: A Scalable, Diversity-Driven Framework for Natural-Language Proof Verification"
SIZES = {"curated": (238, 51), "opc": (292, 65), "proofbench": (435, 145), "best_of_k": (864, 18)}
"""Pairs and questions of its sets."""
RIGHT = {"curated": 141, "opc": 107}
"""Right proofs of those whose classes it counts."""
BASE, VERIFIER = "Distill-Qwen3-8B", "ProofVerifier-8B"
"""The models of its tables of styles, error types and (the second, trained on other data) ablations."""
ODD: Mapping[str, tuple[str, ...]] = {
    "head_to_head": (
        "The printed accuracies of ProofVerifier-8B, 76.8 and 75.7, have the mean 76.25, printed as 76.2: either it "
        "was rounded down, or it is the mean of unrounded accuracies.",
    ),
    "error_types": (
        "Of the 97 wrong proofs, 15.5, 56.7 and 27.8 % are 15, 55 and 27. With 8 votes each, no number of right votes "
        "gives the printed 41.3 % of 27 proofs: 89 of 216 are 41.2 %, 90 are 41.7 %.",
        "Of 15 proofs with 8 votes each, 53.3 and 61.7 % are 64 and 74 of 120 right votes. Their difference is 8.3 "
        "points; the printed gain, 8.4, subtracts the rounded numbers.",
    ),
}
"""By table, where printed numbers do not follow from one another."""
TABLES = {"main": "main results", "head_to_head": "head to head", "error_types": "error types"}
COLUMNS = {"base": BASE, "verifier": VERIFIER}


@dataclass(frozen=True, kw_only=True)
class PaperNumber:
    """One printed accuracy."""

    set_name: str
    slice: str
    model: str
    percent: float
    table: str
    """In which table it is."""


@cache
def printed(table: str) -> Mapping[str, Mapping[str, float]]:
    """The numbers of a table by row and column, in percent or points; rows are in the paper's order.

    Columns: the set's name and `SET gain` in `main` and `transfer`, `average` in `head_to_head`; `base`, `verifier` and
    `gain` in `style` and `error_types`, which has `share` too; `accuracy`, `kept` and `drop` in `ablation`.
    """
    text = files("pv_eval.report").joinpath("paper_numbers.csv").read_text(encoding="utf-8")
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        if row["table"] == table:
            found.setdefault(row["row"], {})[row["column"]] = float(row["printed"])
    return found


def paper_numbers(set_name: str) -> list[PaperNumber]:
    """The accuracies on a set, in the paper's order; none for a set that the paper does not have."""
    found: dict[tuple[str, str], PaperNumber] = {}

    def add(table: str, model: str, part: str, percent: float) -> None:
        found.setdefault(
            (model, part),
            PaperNumber(
                set_name=set_name, slice=part, model=model, percent=percent, table=TABLES.get(table, table)
            ),
        )

    for table in ("main", "transfer", "head_to_head"):
        for model, numbers in printed(table).items():
            if set_name in SIZES and set_name in numbers:
                add(table, model, "", numbers[set_name])
    for table in {"style", "error_types"} & {set_name}:
        for part, numbers in printed(table).items():
            for column, model in COLUMNS.items():
                add(table, model, part.lower(), numbers[column])
    return list(found.values())
