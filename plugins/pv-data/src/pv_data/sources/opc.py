"""Source `opc`, the Open Proof Corpus: models' proofs of competition problems, marked by people.

Dekoninck et al., 2025, https://huggingface.co/datasets/INSAIT-Institute/OPC, Apache-2.0. Needed are problem_id,
problem, proof, model_id and `label`, which is `correct` or `incorrect`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof
from pv_data.sources.reading.assemble import assemble, attempt, reference
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.unusable import Unusable

__all__ = ["read"]

LABELS = {"correct": True, "incorrect": False}


def read(path: Path, *, references: bool = True) -> Read:
    """Problems, their reference solution, and the proofs of models with people's label.

    Args:
        references: whether the reference solutions are given too.
    """
    yield from assemble(
        path, (".jsonl", ".parquet"), lambda row: _rows(row, references), repeats=(GROUND_TRUTH,)
    )


def _rows(row: Fields, references: bool) -> Iterator[Problem | Proof | Aside]:
    contest, year = row.optional("source"), row.values.get("year")
    problem = Problem(
        source="OPC",
        native_id=row.name("problem_id"),
        text=row.text("problem"),
        licence="Apache-2.0",
        url=f"{contest} {year:g}" if contest and isinstance(year, int | float) else contest,
    )
    yield problem
    if references and row.values.get("reference_solution") is not None:
        yield attempt(
            f"{row.where}:reference_solution", lambda: reference(problem, row.text("reference_solution"))
        )
    yield Proof(
        problem_id=problem.id,
        source=problem.source,
        method="proof",
        model=row.text("model_id"),
        text=row.text("proof"),
        known=_label(row),
        known_by="human: correct or incorrect",
    )


def _label(row: Fields) -> bool:
    label = row.text("label")
    if label not in LABELS:
        raise Unusable("no label: label", f"label is {label[:60]!r}; it is {' or '.join(LABELS)}")
    return LABELS[label]
