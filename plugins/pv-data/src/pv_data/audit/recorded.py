"""The marks that people recorded in a run, as the statistics take them: one a proof, beside the label it has now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pv_data.audit.marks import Mark
from pv_data.export.winning import latest_marks
from pv_data.records import AuditMark, Label
from pv_rl.errors import DataError

__all__ = ["Recorded", "read_audit", "recorded"]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What `decide`, `weigh` and `prove` need."""

    marks: Mapping[str, Mark]
    """By proof id."""
    sizes: Mapping[str, int]
    """Labelled proofs of each slice, also of those that nobody read."""


def read_audit(run: Path) -> Recorded:
    """The audit of a run of `pv-data run`, from its tables `marks` and `labels`.

    Raises:
        DataError: the run has no labels.
    """
    from pv_data.table import read_rows

    found = recorded(read_rows(run / "marks", AuditMark), read_rows(run / "labels", Label))
    if not found.sizes:
        raise DataError(f"{run} has no labels to audit; run pv-data run first")
    return found


def recorded(marks: Iterable[AuditMark], labels: Iterable[Label]) -> Recorded:
    """One mark a proof: by majority of those who read it, each one's latest word, as the export counts it.

    It is held against the label that the proof has now. A proof without one, and one on which readers are split evenly,
    is left out.

    Args:
        marks: as recorded, in the order of the table.
        labels: of the panel; they are read once, and only those of marked proofs are held.
    """
    read = latest_marks(marks)
    slices: dict[str, str] = {}
    held: dict[str, Label] = {}
    for label in labels:
        if label.value is not None:
            slices[label.proof_id] = label.slice
            if label.proof_id in read:
                held[label.proof_id] = label
    found = {}
    for proof, of_proof in read.items():
        right, label = sum(one.human for one in of_proof), held.get(proof)
        if label is not None and 2 * right != len(of_proof):
            found[proof] = Mark(
                slice=label.slice,
                question=label.problem_id,
                proof=proof,
                label=bool(label.value),
                human=2 * right > len(of_proof),
                round=min(one.round for one in of_proof),
            )
    return Recorded(marks=found, sizes=Counter(slices.values()))
