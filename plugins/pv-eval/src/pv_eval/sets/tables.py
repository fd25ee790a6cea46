"""Plain files as sets: the columns that each kind of file has, and the options of its reader.

table     problem, proof, and label, points or first_error
graded    problem, proof and points
NAME      a published set of `published.yaml`, with its own columns
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.sets.forms import Form, Names, form_rows
from pv_eval.sets.published import published
from pv_eval.sets.truth import PointRule
from pv_rl.errors import ConfigError

__all__ = ["read_graded", "read_published", "read_table", "table_rows"]

OF_ALL: Names = {
    "pair_id": ("pair_id", "proof_id", "id"),
    "question_id": ("question_id", "problem_id"),
    "problem": ("problem", "question"),
    "proof": ("proof", "solution", "response"),
    "steps": ("steps",),
    "slice": ("slice",),
    "rule": ("rule",),
    "weight": ("weight",),
    "reference": ("reference", "reference_solution"),
    "rubric": ("rubric", "marking_scheme"),
    "max": ("max_rating", "max_points", "max_score"),
}
OF_TABLE: Names = {
    **OF_ALL,
    "label": ("label", "correct", "is_correct"),
    "points": ("points",),
    "first_error": ("first_error",),
    "step_labels": ("step_labels",),
}
OF_GRADED: Names = {
    **OF_ALL,
    "pair_id": ("Grading ID", "grading_id", "pair_id", "proof_id", "id"),
    "question_id": ("question_id", "problem_id", "Problem ID", "problem_idx"),
    "problem": ("problem", "Problem", "question"),
    "proof": ("model_solution", "Response", "proof", "response"),
    "slice": ("generator", "model", "model_id"),
    "points": ("expert_rating", "Points", "human_rating", "score", "grade", "points"),
    "reference": ("reference_solution", "Solution", "reference"),
    "rubric": ("marking_scheme", "Grading guidelines", "rubric", "rubrics", "grading_scheme"),
}


def read_table(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    rule: str | None = None,
    first: int = 1,
    max: float = 7.0,
    min: float = 0.0,
    positive: float | None = None,
    negative: float | None = None,
    name: str = "",
) -> EvalSet:
    """Pairs of a JSONL, JSON, CSV or Parquet file.

    Required are problem, proof (or steps), and label (see `label_of`), points or first_error; the others have
    defaults: ids are hashes of the texts, the slice is empty, the weight 1. A label has priority over points.

    Args:
        columns: column by meaning, where it has another name; see `OF_TABLE`.
        rule: keep only labels whose column `rule` has this value.
        first: number of a proof's first step in the column first_error, 0 or 1; -1 is no error.
        max: see `PointRule.most`, as for min, positive and negative; a column max_points has priority.
        name: of the set; default the file's.
    """
    points = PointRule(most=max, least=min, positive=positive, negative=negative)
    rows = form_rows(path, Form(columns=OF_TABLE, points=points, first=first).named(columns or {}))
    return build_set(name or path.stem, rows, rule=rule)


def table_rows(path: Path, columns: Mapping[str, str]) -> Iterator[Candidate | LeftOut]:
    """Rows of a file with labels as pairs."""
    return form_rows(path, Form(columns=OF_TABLE).named(columns))


def read_graded(
    path: Path,
    *,
    max: float = 7.0,
    min: float = 0.0,
    positive: float | None = None,
    negative: float | None = None,
    columns: Mapping[str, str] | None = None,
    name: str = "",
) -> EvalSet:
    """Pairs of a JSONL, JSON, CSV or Parquet file with points.

    Args:
        max: see `PointRule`, as for min, positive and negative; a column max_rating of the file has priority.
        columns: column by meaning, where it has another name; see `OF_GRADED`.
        name: of the set; default the file's.
    """
    points = PointRule(most=max, least=min, positive=positive, negative=negative)
    form = Form(columns=OF_GRADED, points=points, rule=str(points)).named(columns or {})
    return build_set(name or path.stem, form_rows(path, form))


def read_published(
    name: str,
    path: Path,
    *,
    positive: float | None = None,
    negative: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> EvalSet:
    """A set of `published.yaml` that has columns there.

    Args:
        name: of the set.
        positive: see `PointRule`, as for negative.
        columns: column by meaning, where the file has another than the published one.
    """
    options = dict(published()[name].form)
    names = {
        meaning: (one,) if isinstance(one, str) else tuple(one)
        for meaning, one in options.pop("columns").items()
    }
    by, most, least = options.pop("by", "human points"), options.pop("max", 7.0), options.pop("min", 0.0)
    points = PointRule(most=most, least=least, positive=positive, negative=negative, by=by)
    if "points" not in names and (positive is not None or negative is not None):
        raise ConfigError(f"the set {name} has no points; leave out the options positive and negative")
    form = Form(columns=names, points=points, rule=str(points) if "points" in names else by, **options)
    return build_set(name, form_rows(path, form.named(columns or {})))
