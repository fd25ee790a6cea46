"""Form of a plain file: finds the columns of a row by their meaning, and makes a pair of it.

A column is looked for by several names, or by a path (`meta.score`, `prompt[0].content`); `points_*` is every column
`points_1`, `points_2`, ..., one a judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from pv_data.records import content_id
from pv_data.sources.reading.fields import LONGEST
from pv_data.sources.reading.form import without_thoughts
from pv_data.sources.reading.paths import is_path, value_at
from pv_data.sources.reading.unusable import Unusable
from pv_eval.sets.base import Candidate, LeftOut
from pv_eval.sets.rows import scan_rows
from pv_eval.sets.sealed import unsealed
from pv_eval.sets.truth import Judges, PointRule, first_error_of, given, grade_of, rubric_of
from pv_eval.sets.values import LABELS, id_of, is_missing, label_of, list_of, number_of, text_of
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError
from pv_rl.plugins import nearest

__all__ = ["MEANINGS", "Form", "Names", "form_rows"]

Names: TypeAlias = Mapping[str, Sequence[str]]
"""By meaning, the columns that are looked for, the likeliest first."""
TRUTHS = ("label", "points", "first_error", "step_labels")
MEANINGS = (
    *("problem", "proof", "steps", *TRUTHS, "max", "pair_id", "question_id"),
    *("slice", "rule", "weight", "reference", "rubric"),
)
UNREAD = "label cannot be read"
ALSO = {"model": "slice", "id": "pair_id"}
"""Other names of meanings that options may use."""


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
    needed: frozenset[str] = frozenset()
    """Meanings whose column the user names, so that the file has to have it."""

    def __post_init__(self) -> None:
        if self.first not in (0, 1) or isinstance(self.first, bool):
            raise ConfigError(f"first is {self.first!r}; it is the number of a proof's first step, 0 or 1")

    @property
    def labelled(self) -> bool:
        """Whether it is a table of the user's own, which may have labels, and ids of pv-data."""
        return "label" in self.columns

    def named(self, columns: Mapping[str, str]) -> Form:
        """The form with columns that the user names.

        Raises:
            ConfigError: a meaning is unknown, or a column is not a text.
        """
        if not isinstance(columns, Mapping):
            raise ConfigError(
                f"columns is {columns!r:.80}; expected columns by meaning, columns.proof=COLUMN"
            )
        chosen = {ALSO.get(meaning, meaning): column for meaning, column in columns.items()}
        if unknown := chosen.keys() - set(MEANINGS):
            raise ConfigError(
                f"columns has {', '.join(sorted(map(str, unknown)))}.{nearest(str(min(unknown, key=str)), MEANINGS)} "
                f"Expected {', '.join(MEANINGS)}"
            )
        if wrong := [
            meaning for meaning, column in chosen.items() if not isinstance(column, str) or not column
        ]:
            raise ConfigError(
                f"columns.{wrong[0]} is {chosen[wrong[0]]!r:.80}; expected the name of a column"
            )
        columns = {**self.columns, **{meaning: (column,) for meaning, column in chosen.items()}}
        return replace(self, columns=columns, needed=frozenset(chosen))


def form_rows(path: Path, form: Form) -> Iterator[Candidate | LeftOut]:
    """A pair of each row, or the reason why the row is left out.

    Raises:
        DataError: the file cannot be read, or its first row has no column for the problem, the proof or a truth.
    """
    fits, made, unread = False, set[str](), ""
    bad: dict[str, str] = {}
    for where, row in scan_rows(path):
        if isinstance(row, str):
            reason = bad.setdefault(row, f"{row} (first in {where})")
            yield LeftOut(row=where, reason=reason)
            continue
        found = _by_meaning(unsealed(row), form.columns)
        if not fits:
            _check(found, row, form)
            fits = True
        pair = _pair(found, form)
        if pair == UNREAD:  # one reason for all such rows, which shows the first
            unread = unread or f"{UNREAD} (first {found['label']!r:.60} in {where}; expected {LABELS})"
            pair = unread
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


def _check(found: Mapping[str, Any], row: Mapping[str, Any], form: Form) -> None:
    """Refuse a file whose first row lacks a column that is needed."""
    truths = [one for one in TRUTHS if one in form.columns]
    for meanings in (*((one,) for one in sorted(form.needed)), ("problem",), ("proof", "steps"), truths):
        if not any(one in found for one in meanings):
            wanted = [name for one in meanings for name in form.columns.get(one, ())]
            raise DataError(
                f"the file has no column {' or '.join(wanted)} for the {meanings[0]}; it has "
                f"{', '.join(map(str, row))[:300]}. Name the column by --set-option columns.{meanings[0]}=COLUMN"
            )


def _pair(row: Mapping[str, Any], form: Form) -> Candidate | str:
    """The pair of a row by meaning, or the reason why the row is left out."""
    texts = _texts(row, form)
    if isinstance(texts, str):
        return texts
    truth = _truth(row, texts["steps"], form)
    if isinstance(truth, str):
        return truth
    weight = number_of(row["weight"]) if given(row.get("weight")) else 1.0
    if weight is None or weight < 0:
        return "weight is not a number from 0"
    part = text_of(row.get("slice")) or ""
    question_id = id_of(row.get("question_id")) or content_id("question", " ".join(texts["question"].split()))
    own = () if form.labelled else (part,)
    pair = Pair(
        pair_id=id_of(row.get("pair_id")) or content_id("pair", question_id, *own, texts["proof"]),
        question_id=question_id,
        slice=part,
        weight=weight,
        **texts,
        **truth,
    )
    by_points = "" if not is_missing(row.get("label")) or pair.grade is None else str(form.points)
    return Candidate(
        pair=pair,
        rule=text_of(row.get("rule")) or form.rule or by_points,
        problem_ids=frozenset({question_id}) if form.labelled else frozenset(),
        full=None if pair.grade is None else _full(row, form),
    )


def _full(row: Mapping[str, Any], form: Form) -> float | None:
    """Full points of a row's grade; None for several judges and for parts, which may have maxima of their own."""
    if given(row.get("max")):
        return number_of(row["max"])
    return None if number_of(row.get("points")) is None else form.points.most


def _texts(row: Mapping[str, Any], form: Form) -> dict[str, Any] | str:
    """Question, proof, steps, reference and rubric of a row."""
    steps = _steps(row)
    if isinstance(steps, str):
        return steps
    problem, proof = text_of(row.get("problem")), text_of(row.get("proof"))
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
    return {"question": problem, "proof": proof, "steps": steps, "reference": reference, "rubric": rubric}


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
    if label is None and not is_missing(row.get("label")):
        return UNREAD
    grade = grade_of(row["points"], row.get("max"), form.points) if "points" in row else "no points"
    if isinstance(grade, str) and grade != "no points":
        return grade
    grade = None if isinstance(grade, str) else grade
    if label is None and grade is not None:
        label = form.points.label(grade)
    error = first_error_of(row.get("first_error"), row.get("step_labels"), steps, form.first)
    if isinstance(error, str):
        return error
    if error is not None and grade is None:
        if label is not None and label is not (error == 0):
            return "label and first error differ"
        label = error == 0
    if label is None and grade is None and "points" in row:
        return "no points"
    return {"label": label, "grade": grade, "first_error": error}
