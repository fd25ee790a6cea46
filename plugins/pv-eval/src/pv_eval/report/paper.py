"""Printed numbers of the paper on the sets that it names, read from `paper_numbers.csv` beside this file.

They are copied as printed from the tables of "ProofVerifier: A Scalable, Diversity-Driven Framework for
Natural-Language Proof Verification": main results, head to head, transfer, style, error types. All are Avg@8 in percent
(of wrong proofs only, for the error types), without intervals; its curated set is not public.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

__all__ = ["PAPER", "SIZES", "PaperNumber", "paper_numbers"]

PAPER = "ProofVerifier: A Scalable, Diversity-Driven Framework for Natural-Language Proof Verification"
SIZES = {"curated": (238, 51), "opc": (292, 65), "proofbench": (435, 145)}
"""Pairs and questions of its sets."""


@dataclass(frozen=True, kw_only=True)
class PaperNumber:
    """One printed number."""

    set_name: str
    slice: str
    model: str
    percent: float
    table: str
    """In which table it is."""


def paper_numbers(set_name: str) -> list[PaperNumber]:
    """Those of a set, in the order of the file; none for a set that the paper does not have."""
    text = files("pv_eval.report").joinpath("paper_numbers.csv").read_text(encoding="utf-8")
    return [
        PaperNumber(
            set_name=row["set"],
            slice=row["slice"],
            model=row["model"],
            percent=float(row["percent"]),
            table=row["table"],
        )
        for row in csv.DictReader(text.splitlines())
        if row["set"] == set_name
    ]
