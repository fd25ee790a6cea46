"""Source `proofbench`, IMO-ProofBench: problems with a reference solution, without proofs to judge.

Luong et al., 2025, https://github.com/google-deepmind/superhuman (imobench), CC-BY-4.0. A CSV file with the columns
Problem ID, Problem, Solution, Category, Short Answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import Aside, Problem, Proof
from pv_data.sources.reading.assemble import assemble, reference
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.rows import TABLES

__all__ = ["read"]


def read(path: Path) -> Read:
    """Problems and their reference solution. A geometry problem says so in its subject."""
    yield from assemble(path, TABLES, _rows)


def _rows(row: Fields) -> Iterator[Problem | Proof | Aside]:
    problem = Problem(
        source="IMO-ProofBench",
        native_id=row.text("Problem ID"),
        text=row.text("Problem"),
        answer=row.optional("Short Answer"),
        subject=row.optional("Category"),
        licence="CC-BY-4.0",
        url=f"google-deepmind/superhuman {row.optional('Source')}".strip(),
    )
    yield problem
    yield reference(problem, row.text("Solution"))
