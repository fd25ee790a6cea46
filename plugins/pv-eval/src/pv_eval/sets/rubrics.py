"""Rubric join: marking schemes and reference solutions of another file, by the text of the problem.

FineProofs, MathArena and IMO-ProofBench publish them apart from the proofs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pv_data.splits import text_key
from pv_eval.sets.base import EvalSet
from pv_eval.sets.rows import scan_rows
from pv_eval.sets.truth import rubric_of
from pv_eval.sets.values import text_of
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = ["with_rubrics"]

PROBLEM = ("problem", "Problem", "question")
RUBRIC = ("rubric", "rubrics", "marking_scheme", "grading_scheme", "Grading guidelines")
REFERENCE = ("reference_solution", "reference", "sample_solution", "Solution")


def with_rubrics(found: EvalSet, path: Path) -> EvalSet:
    """The set with the rubric and the reference of each question that has none and is in the file.

    Raises:
        DataError: the file cannot be read, or has neither for any question of the set.
    """
    known: dict[str, tuple[str, str]] = {}
    for _, row in scan_rows(path):
        if isinstance(row, str):
            continue
        problem = next((text for name in PROBLEM if (text := text_of(row.get(name)))), "")
        rubric = next((text for name in RUBRIC if (text := rubric_of(row.get(name)))), "")
        reference = next((text for name in REFERENCE if (text := text_of(row.get(name)))), "")
        if problem and (rubric or reference):
            known.setdefault(text_key(problem), (rubric, reference))
    pairs, joined = [], set[str]()
    for pair in found.pairs:
        rubric, reference = known.get(text_key(pair.question), ("", ""))
        if rubric or reference:
            joined.add(pair.question_id)
        pairs.append(replace(pair, rubric=pair.rubric or rubric, reference=pair.reference or reference))
    if not joined:
        raise DataError(
            f"{path} has no rubric and no reference for a question of the set {found.name} ({len(known)} others). It "
            f"needs {', '.join(PROBLEM)} with the same text, and {', '.join(RUBRIC)} or {', '.join(REFERENCE)}"
        )
    note = (
        f"Rubrics and references of {len(joined)} of {plural(found.counts['questions'], 'question')} are "
        f"from {path.name}."
    )
    return replace(found, pairs=tuple(pairs), notes=(*found.notes, note))
