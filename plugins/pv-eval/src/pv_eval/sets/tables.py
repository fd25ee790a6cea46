"""Plain files as sets: `table` (labels), `graded` (points), and the published forms `proofbench` and `gradingbench`.

ProofBench (https://huggingface.co/datasets/wenjiema02/ProofBench, MIT): problem_id, problem, generator, model_solution,
expert_rating of 0 to 7. IMO-GradingBench (https://github.com/google-deepmind/superhuman, imobench/gradingbench.csv,
CC-BY-4.0): Grading ID, Problem ID, Problem, Response, Points of 0 to 7. The paper takes 7 of 7 for right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pv_data.records import content_id
from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.sets.rows import read_rows
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError
from pv_rl.rewards.base import read_label

__all__ = [
    "PointRule",
    "label_of",
    "number_of",
    "read_graded",
    "read_gradingbench",
    "read_proofbench",
    "read_table",
    "table_rows",
    "text_of",
]

Names = Mapping[str, Sequence[str]]
"""By meaning, the columns that are looked for, the likeliest first."""
OF_TABLE: Names = {
    "pair_id": ("pair_id", "proof_id", "id"),
    "question_id": ("question_id", "problem_id"),
    "problem": ("problem", "question"),
    "proof": ("proof", "solution", "response"),
    "label": ("label", "correct", "is_correct"),
    "slice": ("slice",),
    "rule": ("rule",),
    "weight": ("weight",),
}
OF_GRADED: Names = {
    "pair_id": ("Grading ID", "grading_id", "pair_id"),
    "question_id": ("problem_id", "Problem ID", "problem_idx"),
    "problem": ("problem", "Problem", "question"),
    "proof": ("model_solution", "Response", "proof", "response"),
    "points": ("expert_rating", "Points", "human_rating", "score", "grade", "points"),
    "max": ("max_rating", "max_points", "max_score"),
    "model": ("generator", "model", "model_id"),
}
REQUIRED = frozenset({"problem", "proof", "label", "points"})
WORDS = {"correct": True, "right": True, "incorrect": False, "wrong": False}


def read_table(
    path: Path, *, columns: Mapping[str, str] | None = None, rule: str | None = None, name: str = ""
) -> EvalSet:
    """Pairs of a JSONL, CSV or Parquet file.

    Required are the columns problem, proof and label (see `label_of`); the others have defaults: ids are hashes of the
    texts, the slice is empty, the weight 1.

    Args:
        columns: column by meaning, where it has another name; see `OF_TABLE`.
        rule: keep only labels whose column `rule` has this value.
        name: of the set; default the file's.
    """
    return build_set(name or path.stem, table_rows(path, columns or {}), rule=rule)


def table_rows(path: Path, columns: Mapping[str, str]) -> Iterator[Candidate | LeftOut]:
    """Rows of a file with labels as pairs."""

    def read(row: Mapping[str, Any]) -> Candidate | str:
        label, weight = label_of(row["label"]), number_of(row.get("weight", 1.0))
        if label is None and row["label"] not in (None, ""):
            return "label cannot be read"
        if weight is None or weight < 0:
            return "weight is not a number from 0"
        pair = replace(_pair(row, label, text_of(row.get("slice")) or ""), weight=weight)
        ids = frozenset({pair.question_id})
        return Candidate(pair=pair, rule=text_of(row.get("rule")) or "", problem_ids=ids)

    return _rows(path, OF_TABLE, columns, read)


@dataclass(frozen=True, kw_only=True)
class PointRule:
    """Which points make a proof right, and which wrong."""

    most: float = 7.0
    """Points of a perfect proof, where the row has no maximum."""
    positive: float | None = None
    """Right from here on; None: only with all points."""
    negative: float | None = None
    """Wrong up to here, and without a label in between; None: wrong wherever it is not right."""

    def __post_init__(self) -> None:
        if not self.most > 0:
            raise ConfigError(f"max is {self.most!r}; it is the points of a perfect proof, above 0")
        top = self.most if self.positive is None else self.positive
        if not 0 < top <= self.most or (self.negative is not None and not 0 <= self.negative < top):
            raise ConfigError(
                f"positive={self.positive!r}, negative={self.negative!r}; expected 0 <= negative < positive <= "
                f"max = {self.most:g}"
            )

    def label(self, points: float, most: float) -> bool | None:
        """The label; both numbers are those of the row."""
        scale = most / self.most
        if points >= (most if self.positive is None else self.positive * scale):
            return True
        return None if self.negative is not None and points > self.negative * scale else False

    def __str__(self) -> str:
        top = "all points" if self.positive is None else f"{self.positive:g} or more of {self.most:g}"
        low = "" if self.negative is None else f", wrong up to {self.negative:g}"
        return f"human points: right with {top}{low}"


def read_graded(
    path: Path,
    *,
    max: float = 7.0,
    positive: float | None = None,
    negative: float | None = None,
    columns: Mapping[str, str] | None = None,
    name: str = "",
) -> EvalSet:
    """Pairs of a JSONL, CSV or Parquet file with points.

    Args:
        max: see `PointRule`, as for positive and negative; a column max_rating of the file has priority.
        columns: column by meaning, where it has another name; see `OF_GRADED`.
        name: of the set; default the file's.
    """
    rule = PointRule(most=max, positive=positive, negative=negative)
    return build_set(name or path.stem, _graded_rows(path, rule, columns or {}))


def read_proofbench(path: Path, *, positive: float | None = None, negative: float | None = None) -> EvalSet:
    """ProofBench; its test split, as the paper used it, has 435 pairs of 145 questions."""
    return read_graded(path, positive=positive, negative=negative, name="proofbench")


def read_gradingbench(path: Path, *, positive: float | None = None, negative: float | None = None) -> EvalSet:
    """IMO-GradingBench, 1,000 gradings."""
    return read_graded(path, positive=positive, negative=negative, name="gradingbench")


def _graded_rows(path: Path, rule: PointRule, columns: Mapping[str, str]) -> Iterator[Candidate | LeftOut]:
    def read(row: Mapping[str, Any]) -> Candidate | str:
        points, most = number_of(row["points"]), number_of(row.get("max", rule.most))
        if points is None or most is None:
            return "points are not a number"
        if not 0 <= points <= most or not most > 0:
            return "points out of range"
        label, model = rule.label(points, most), text_of(row.get("model")) or ""
        if label is None:
            return "points between right and wrong"
        return Candidate(pair=_pair(row, label, model, model), rule=str(rule))

    return _rows(path, OF_GRADED, columns, read)


def _rows(
    path: Path,
    names: Names,
    columns: Mapping[str, str],
    read: Callable[[Mapping[str, Any]], Candidate | str],
) -> Iterator[Candidate | LeftOut]:
    """Pairs of a file.

    Args:
        read: from values by meaning to a pair, or the reason why the row is not one.
    """
    found: dict[str, str] | None = None
    for where, row in read_rows(path):
        found = found or _chosen(row, names, columns)
        given = {meaning: row.get(column) for meaning, column in found.items()}
        texts = text_of(given["problem"]) is not None and text_of(given["proof"]) is not None
        pair = read(given) if texts else "question or proof is not a text"
        yield LeftOut(row=where, reason=pair) if isinstance(pair, str) else pair


def _chosen(row: Mapping[str, Any], names: Names, given: Mapping[str, str]) -> dict[str, str]:
    """The column of each meaning, decided by the first row.

    Args:
        given: by meaning, the column that the user names.
    """
    if unknown := given.keys() - names.keys():
        raise ConfigError(f"columns has {', '.join(sorted(unknown))}; expected {', '.join(names)}")
    found: dict[str, str] = {}
    for meaning, usual in names.items():
        looked_for = [given[meaning]] if meaning in given else list(usual)
        column = next((name for name in looked_for if name in row), None)
        if column is not None:
            found[meaning] = column
        elif meaning in given or meaning in REQUIRED:
            raise DataError(
                f"the file has no column {' or '.join(looked_for)} for the {meaning}; it has "
                f"{', '.join(map(str, row))[:300]}. Name the column by --set-option columns.{meaning}=COLUMN"
            )
    return found


def _pair(row: Mapping[str, Any], label: bool | None, part: str, *more: str) -> Pair:
    """A pair; where the row has no id, `more` enters it besides question and proof."""
    problem, proof = text_of(row["problem"]) or "", text_of(row["proof"]) or ""
    question_id = _id(row.get("question_id")) or content_id("question", " ".join(problem.split()))
    return Pair(
        pair_id=_id(row.get("pair_id")) or content_id("pair", question_id, *more, proof),
        question_id=question_id,
        label=label,
        slice=part,
        question=problem,
        proof=proof,
    )


def _id(value: object) -> str:
    """An id is a text or a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return (text_of(value) or "").strip()


def text_of(value: object) -> str | None:
    """A text, also one given as a list of steps; None for anything else. Halves of surrogate pairs are replaced."""
    if isinstance(value, list) and value and all(isinstance(step, str) for step in value):
        value = "\n".join(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def label_of(value: object) -> bool | None:
    """A bool, 0 or 1, or true, false, correct, incorrect, right, wrong in any case; None for anything else."""
    if isinstance(value, str) and value.strip().lower() in WORDS:
        return WORDS[value.strip().lower()]
    try:
        return read_label(value)
    except DataError:
        return None


def number_of(value: object) -> float | None:
    """A finite number, also one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
