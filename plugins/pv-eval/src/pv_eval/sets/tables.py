"""Plain files as sets: a file's columns by their meaning, and a pair of each row.

    table     problem, proof, and label, points or first_error
    graded    problem, proof and points
    NAME      a published set of `published.yaml`, with its own columns

A column is looked for by several names, or by a path (`meta.score`, `prompt[0].content`); `points_*` is every column
`points_1`, `points_2`, ..., one a judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pv_data.records import content_id
from pv_data.sources.reading.fields import LONGEST
from pv_data.sources.reading.form import without_thoughts
from pv_data.sources.reading.paths import is_path, value_at
from pv_data.sources.reading.unusable import Unusable
from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.sets.published import published
from pv_eval.sets.rows import scan_rows
from pv_eval.sets.sealed import unsealed
from pv_eval.sets.truth import Judges, PointRule, first_error_of, given, grade_of, rubric_of
from pv_eval.sets.values import id_of, label_of, list_of, number_of, text_of
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError

__all__ = [
    "Form",
    "label_of",
    "number_of",
    "read_graded",
    "read_published",
    "read_table",
    "table_rows",
    "text_of",
]

Names = Mapping[str, Sequence[str]]
"""By meaning, the columns that are looked for, the likeliest first."""
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
    "pair_id": ("Grading ID", "grading_id", "pair_id"),
    "question_id": ("problem_id", "Problem ID", "problem_idx"),
    "problem": ("problem", "Problem", "question"),
    "proof": ("model_solution", "Response", "proof", "response"),
    "slice": ("generator", "model", "model_id"),
    "points": ("expert_rating", "Points", "human_rating", "score", "grade", "points"),
    "reference": ("reference_solution", "Solution", "reference"),
    "rubric": ("marking_scheme", "Grading guidelines", "rubric", "rubrics", "grading_scheme"),
}
MEANINGS = tuple(OF_TABLE)
TRUTHS = ("label", "points", "first_error", "step_labels")
OLDER = {"model": "slice"}
"""Names of meanings that options may still use."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a file is read."""

    columns: Names
    points: PointRule = field(default_factory=PointRule)
    first: int = 1
    """Number of a proof's first step in the file, 0 or 1."""
    thoughts: bool = False
    """Whether a proof may begin with thoughts that end in `</think>`; they are removed."""
    rule: str = ""
    """Where the labels are from, if the row does not say it."""

    def __post_init__(self) -> None:
        if self.first not in (0, 1) or isinstance(self.first, bool):
            raise ConfigError(f"first is {self.first!r}; it is the number of a proof's first step, 0 or 1")

    def named(self, columns: Mapping[str, str]) -> Form:
        """The form with columns that the user names.

        Raises:
            ConfigError: a meaning is unknown, or a column is not a text.
        """
        if not isinstance(columns, Mapping):
            raise ConfigError(
                f"columns is {columns!r:.80}; expected columns by meaning, columns.proof=COLUMN"
            )
        chosen = {OLDER.get(meaning, meaning): column for meaning, column in columns.items()}
        if unknown := chosen.keys() - set(MEANINGS):
            raise ConfigError(
                f"columns has {', '.join(sorted(map(str, unknown)))}; expected {', '.join(MEANINGS)}"
            )
        if wrong := [
            meaning for meaning, column in chosen.items() if not isinstance(column, str) or not column
        ]:
            raise ConfigError(
                f"columns.{wrong[0]} is {chosen[wrong[0]]!r:.80}; expected the name of a column"
            )
        return replace(self, columns={**self.columns, **{one: (column,) for one, column in chosen.items()}})


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


def form_rows(path: Path, form: Form) -> Iterator[Candidate | LeftOut]:
    """A pair of each row, or the reason why it is none.

    Raises:
        DataError: the file cannot be read, or its first row has no column for the problem, the proof or a truth.
    """
    fits, made = False, set[str]()
    for where, row in scan_rows(path):
        if isinstance(row, str):
            yield LeftOut(row=where, reason=row)
            continue
        found = _by_meaning(unsealed(row), form.columns)
        if not fits:
            _check(found, row, form.columns)
            fits = True
        pair = _pair(found, form)
        if isinstance(pair, Candidate) and not id_of(found.get("pair_id")):
            # ids made of the texts: the same model may give the same proof several times
            again = pair.pair.pair_id in made
            made.add(pair.pair.pair_id)
            pair = "proof is there already" if again else pair
        yield LeftOut(row=where, reason=pair) if isinstance(pair, str) else pair


def _by_meaning(row: Mapping[str, Any], columns: Names) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for meaning, names in columns.items():
        for name in names:
            value = _value(row, name)
            if value is not None:
                found[meaning] = value[0]
                break
    return found


def _value(row: Mapping[str, Any], name: str) -> tuple[Any] | None:
    """What the row has there; None where it has no such column. For `points_*` a mapping by judge."""
    if name in row:
        return (row[name],)
    if "*" in name:
        before, _, behind = name.partition("*")
        judges = Judges(
            (middle, value)
            for column, value in row.items()
            if column.startswith(before)
            and column.endswith(behind)
            and (middle := column[len(before) : len(column) - len(behind)]).isdecimal()
        )
        return (judges,) if judges else None
    if is_path(name) is None or not set(name) & set(".["):
        return None
    try:
        return (value_at(row, name),)
    except Unusable:
        return None


def _check(found: Mapping[str, Any], row: Mapping[str, Any], columns: Names) -> None:
    """Refuse a file whose first row lacks a column that is needed."""
    truths = [one for one in TRUTHS if one in columns]
    for meanings in (("problem",), ("proof", "steps"), truths):
        if not any(one in found for one in meanings):
            wanted = [name for one in meanings for name in columns.get(one, ())]
            raise DataError(
                f"the file has no column {' or '.join(wanted)} for the {meanings[0]}; it has "
                f"{', '.join(map(str, row))[:300]}. Name the column by --set-option columns.{meanings[0]}=COLUMN"
            )


def _pair(row: Mapping[str, Any], form: Form) -> Candidate | str:
    steps = _steps(row)
    problem, proof = text_of(row.get("problem")), text_of(row.get("proof"))
    if isinstance(steps, str):
        return steps
    if proof is None and "proof" not in row and steps:
        proof = "\n\n".join(steps)
    if problem is None or proof is None:
        return "question or proof is not a text"
    reference, rubric = text_of(row.get("reference")) or "", rubric_of(row.get("rubric"))
    if any(len(text) > LONGEST for text in (problem, proof, reference, rubric)):
        return f"a text has more than {LONGEST} characters"
    if form.thoughts and "</think>" in proof:
        try:
            proof = without_thoughts(proof)
        except Unusable as error:
            return error.reason
    truth = _truth(row, steps, form)
    if isinstance(truth, str):
        return truth
    weight = number_of(row["weight"]) if given(row.get("weight")) else 1.0
    if weight is None or weight < 0:
        return "weight is not a number from 0"
    own_id, part = id_of(row.get("question_id")), text_of(row.get("slice")) or ""
    question_id = own_id or content_id("question", " ".join(problem.split()))
    labelled = given(row.get("label"))
    by_model = () if "label" in form.columns else (part,)  # ids of earlier versions
    pair = Pair(
        pair_id=id_of(row.get("pair_id")) or content_id("pair", question_id, *by_model, proof),
        question_id=question_id,
        slice=part,
        question=problem,
        proof=proof,
        weight=weight,
        steps=steps,
        reference=reference,
        rubric=rubric,
        **truth,
    )
    rule = (
        text_of(row.get("rule")) or form.rule or ("" if labelled or pair.grade is None else str(form.points))
    )
    # only a table of the user's own can have ids of pv-data
    ids = frozenset({question_id}) if "label" in form.columns else frozenset[str]()
    return Candidate(pair=pair, rule=rule, problem_ids=ids)


def _steps(row: Mapping[str, Any]) -> tuple[str, ...] | str:
    value = row.get("steps", row.get("proof") if isinstance(row.get("proof"), list) else None)
    if not given(value) or value == []:
        return ()
    texts = [text_of(one) for one in list_of(value, str) or []]
    if not texts or not all(text and text.strip() for text in texts):
        return "steps are not a list of texts" if "steps" in row else ()
    return tuple(text for text in texts if text)


def _truth(row: Mapping[str, Any], steps: Sequence[str], form: Form) -> dict[str, Any] | str:
    """Label, grade and first error of a row."""
    label = label_of(row.get("label"))
    if label is None and given(row.get("label")):
        return "label cannot be read"
    grade: float | str | None = None
    if "points" in row:
        grade = grade_of(row["points"], row.get("max"), form.points)
        if grade == "no points" and label is not None:
            grade = None
        if isinstance(grade, str):
            return grade
        label = form.points.label(grade) if label is None and grade is not None else label
    error = first_error_of(row.get("first_error"), row.get("step_labels"), steps, form.first)
    if isinstance(error, str):
        return error
    if error is not None and grade is None:
        if label is not None and label is not (error == 0):
            return "label and first error differ"
        label = error == 0
    return {"label": label, "grade": grade, "first_error": error}
