"""`table`: pairs of a plain file with columns of the user's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pv_data.records import content_id
from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.sets.columns import chosen, label_of, number_of, question_id, text_of
from pv_eval.sets.rows import read_rows
from pv_eval.votes import Pair

__all__ = ["NAMES", "read_table", "table_rows"]

NAMES: Mapping[str, tuple[str, ...]] = {
    "pair_id": ("pair_id", "proof_id", "id"),
    "question_id": ("question_id", "problem_id"),
    "problem": ("problem", "question"),
    "proof": ("proof", "solution", "response"),
    "label": ("label", "correct", "is_correct"),
    "slice": ("slice",),
    "rule": ("rule",),
    "weight": ("weight",),
}
NEEDED = ("problem", "proof", "label")


def read_table(
    path: Path, *, columns: Mapping[str, str] | None = None, rule: str | None = None, name: str = ""
) -> EvalSet:
    """Pairs of a JSONL, CSV or Parquet file.

    Needed are the columns problem, proof and label (see `label_of`); the rest has defaults: ids are hashes of the
    texts, the slice is empty, the weight 1.

    Args:
        columns: column by meaning, where it is called otherwise; see `NAMES`.
        rule: keep only labels whose column `rule` says this.
        name: of the set; the file's unless given.
    """
    return build_set(name or path.stem, table_rows(path, columns or {}), rule=rule)


def table_rows(path: Path, columns: Mapping[str, str]) -> Iterator[Candidate | LeftOut]:
    """Rows of a file as pairs."""
    found: dict[str, str] | None = None
    for where, row in read_rows(path):
        if found is None:
            found = chosen(row, NAMES, columns, NEEDED)
        yield _candidate(where, {meaning: row.get(column) for meaning, column in found.items()})


def _candidate(where: str, row: Mapping[str, Any]) -> Candidate | LeftOut:
    problem, proof = text_of(row["problem"]), text_of(row["proof"])
    if problem is None or proof is None:
        return LeftOut(row=where, reason="question or proof is no text")
    label = label_of(row["label"])
    if label is None and row["label"] not in (None, ""):
        return LeftOut(row=where, reason="label cannot be read")
    weight = number_of(row.get("weight", 1.0))
    if weight is None or weight < 0:
        return LeftOut(row=where, reason="weight is no number from 0")
    asked_by = _id(row.get("question_id")) or question_id(problem)
    pair = Pair(
        pair_id=_id(row.get("pair_id")) or content_id("pair", asked_by, proof),
        question_id=asked_by,
        label=label,
        slice=text_of(row.get("slice")) or "",
        question=problem,
        proof=proof,
        weight=weight,
    )
    return Candidate(pair=pair, rule=text_of(row.get("rule")) or "", problem_ids=frozenset({asked_by}))


def _id(value: object) -> str:
    """An id is a text or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return (text_of(value) or "").strip()
