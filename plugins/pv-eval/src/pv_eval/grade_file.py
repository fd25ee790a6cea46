"""Reader of a plain file of grades: each row has a human's and a verifier's grade of a proof. Pairs and votes come out.

Columns are found by their usual names, see `COLUMNS`. The verifier's grade is a number, a list of numbers (several
votes), or empty (missing); rows with the same proof and human grade, or the same id, are votes on one pair.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pv_data.records import content_id
from pv_eval.graded import Scale
from pv_eval.sets.rows import read_rows
from pv_eval.sets.values import number_of
from pv_eval.votes import Pair, Vote
from pv_judge.files import load_json
from pv_judge.pages.text import plural
from pv_rl.errors import ConfigError, DataError

__all__ = ["COLUMNS", "GradeFile", "read_grades"]

COLUMNS: Mapping[str, Sequence[str]] = {
    "human": (
        "human_grade", "human_rating", "human_score", "human_points", "human", "expert_rating", "expert_grade",
        "expert_score", "reference_grade", "true_grade", "gold_grade", "gold", "truth", "Points",
    ),
    "model": (
        "model_grade", "model_grades", "model_rating", "model_score", "verifier_grade", "verifier_grades",
        "judge_grade", "judge_score", "predicted_grade", "predicted_score", "prediction", "predicted", "pred",
        "average_automatic_rating", "verifier", "judge", "model",
    ),
    "question": ("question_id", "problem_id", "Problem ID", "problem_idx", "question", "problem", "Problem"),
    "pair": ("pair_id", "proof_id", "pair", "Grading ID", "grading_id", "id"),
    "proof": ("proof", "model_solution", "solution", "response", "Response"),
    "max": ("max_rating", "max_points", "max_score", "max_grade", "full_points"),
    "sample": ("sample",),
}  # fmt: skip
"""By meaning, the names that are looked for, the likeliest first."""
NAMES = frozenset({"human", "judge", "model", "verifier"})
"""Columns that hold a person's or a model's name in many files, so that their first value decides."""
EITHER = ("grade", "grades", "score", "rating", "points")
"""Names of grades that do not say whose."""
SHARES = frozenset({"average_automatic_rating"})
"""Columns of a published file that are shares of the full points."""
STEPS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01)
NEAR = 1e-9
INFERRED = ", the largest human grade. If the full points are others, give --points N"
MOST_VOTES = 10_000
"""Of a row."""


@dataclass(frozen=True, kw_only=True)
class GradeFile:
    """Pairs with grades, votes with grades, and what was taken for granted."""

    pairs: tuple[Pair, ...]
    votes: tuple[Vote, ...]
    scale: Scale
    notes: tuple[str, ...]
    """Which columns were read, and the scale: sentences for the user."""


@dataclass(frozen=True, kw_only=True)
class _Row:
    where: str
    values: Mapping[str, Any]
    """By meaning."""
    human: float | None
    model: tuple[float | None, ...]
    most: float | None
    """Full points that the row itself gives."""


def read_grades(
    path: Path,
    *,
    points: float | None = None,
    grades: Sequence[float] | None = None,
    model_points: float | None = None,
    accept: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> GradeFile:
    """Read a JSONL, JSON, CSV or Parquet file.

    Args:
        points: full points; None for the file's: its column of maxima, else its largest grade.
        grades: the allowed grades in points instead, ascending; None for equal steps that hold all human grades.
        model_points: full points of the verifier's grades, where they are on another scale than the human's.
        accept: points from which a proof is accepted; None for full points.
        columns: column by meaning, where it has another name.

    Raises:
        DataError: the file has no such columns, or a value is not a grade; it names line, value and what is allowed.
        ConfigError: an option is unknown or out of bounds.
    """
    allowed = None if grades is None else Scale(grades=tuple(grades), accept=accept)
    if points is not None and allowed is not None and points != allowed.full:
        raise ConfigError(f"points={points:g} and grades up to {allowed.full:g}; give one of the two")
    rows, found = _rows(path, columns or {})
    own = {row.most for row in rows if row.most is not None}
    full, whence = _full(rows, points if allowed is None else allowed.full)
    of_model, why = (
        (model_points, "as given") if model_points is not None else _model_scale(rows, found["model"], full)
    )
    if of_model is not None and not 0 < of_model < math.inf:
        raise ConfigError(f"the verifier's full points are {of_model:g}; expected a number above 0")
    given = points is not None or allowed is not None
    wrong = ". Correct it, or give other full points by "
    remedy = f"{wrong}--points N" if given or own else INFERRED
    of_it = remedy if of_model is None and remedy == INFERRED else f"{wrong}--model-points N"
    pairs: dict[str, Pair] = {}
    votes: list[Vote] = []
    counts: Counter[str] = Counter()
    humans: list[float] = []
    for place, row in enumerate(rows):
        most = row.most or full
        human = _share(row, "human's grade", row.human, most, remedy)
        shares = [_share(row, "verifier's grade", one, of_model or most, of_it) for one in row.model]
        pair = _pair(row, human, place, named="question" in found)
        known = pairs.setdefault(pair.pair_id, pair)
        if (known.grade, known.question_id) != (pair.grade, pair.question_id):
            raise DataError(
                f"{row.where}: {pair.pair_id[:80]!r} occurs before with another human grade or question; give each "
                "grading an id of its own"
            )
        # points of other maxima are seldom among the allowed ones when they are scaled
        humans += [] if human is None or most != full else [human * full]
        first = row.values.get("sample")
        for share in shares:
            sample = counts[pair.pair_id] if first in (None, "") else _sample(row, first)
            counts[pair.pair_id] += 1
            vote = Vote(
                pair_id=pair.pair_id, question_id=pair.question_id, sample=sample, verdict=None, grade=share
            )
            votes.append(vote)
    scale = allowed or Scale(grades=_allowed(humans, full), accept=accept)
    notes = [
        "Columns: " + ", ".join(f"{meaning} {column!r}" for meaning, column in found.items()) + ".",
        f"Full points are {full:g}, {whence}.",
    ]
    if len(own) > 1:
        maxima = ", ".join(f"{one:g}" for one in sorted(own)[:10])
        notes.append(f"Rows have maxima of {maxima}: points are scaled to {full:g}.")
    if between := sum(not scale.allows(pair.grade) for pair in pairs.values() if pair.grade is not None):
        verb = "is no allowed one" if between == 1 else "are not allowed ones"
        notes.append(
            f"{plural(between, 'human grade')} {verb}; each counts as the nearest in exact, within one, accuracy."
        )
    if of_model is not None:
        notes.append(f"The verifier's grades go up to {of_model:g}, {why}.")
    elif full > 1 and {1.0} <= {one for row in rows for one in row.model} <= {0.0, 1.0, None}:
        notes.append("The verifier's grades are all 0 or 1. If 1 means full points, give --model-points 1.")
    samples = {str(row.values["sample"]) for row in rows if "sample" in found}
    if len(samples) > 1 and not {"pair", "proof"} & found.keys():
        notes.append(
            f"No column names the pair, so each row counts as a proof of its own, although {found['sample']!r} numbers "
            "the votes. Name the column by --column pair=COLUMN."
        )
    if "question" not in found:
        notes.append(
            "No column names the question, so each proof is a question of its own: intervals draw proofs, and ranks "
            "within a question and best-of-k are left out. Name the column by --column question=COLUMN."
        )
    return GradeFile(pairs=tuple(pairs.values()), votes=tuple(votes), scale=scale, notes=tuple(notes))


def _rows(path: Path, given: Mapping[str, str]) -> tuple[list[_Row], dict[str, str]]:
    """The rows, and the column of each meaning, decided by the first value of each column."""
    rows: list[_Row] = []
    read = list(read_rows(path))
    if not read:
        raise DataError(f"{path} has no rows; give a file with a human's and a verifier's grade in each")
    first: dict[str, Any] = {}
    for _, row in read:
        for column, value in row.items():
            if first.get(column) in (None, ""):
                first[column] = value
    found = _chosen(first, given)
    for where, row in read:
        values = {meaning: row.get(column) for meaning, column in found.items()}
        human = _number(values["human"], where, found["human"])
        model = _several(values["model"], where, found["model"])
        most = _number(values.get("max"), where, found.get("max", ""))
        if most is not None and not most > 0:
            raise DataError(f"{where}: its {found['max']} is {most:g}; expected full points above 0")
        rows.append(_Row(where=where, values=values, human=human, model=model, most=most))
    return rows, found


def _chosen(row: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    if unknown := given.keys() - COLUMNS.keys():
        raise ConfigError(f"--column {', '.join(sorted(unknown))} is unknown; expected {', '.join(COLUMNS)}")
    found: dict[str, str] = {}
    for meaning, usual in COLUMNS.items():
        names = [given[meaning]] if meaning in given else usual
        fits = [name for name in names if name in row and (meaning in given or _fits(name, row[name]))]
        fits = [name for name in fits if name not in found.values()]
        if fits:
            found[meaning] = fits[0]
        elif meaning in given:
            raise DataError(f"the file has no column {given[meaning]!r}; it has {_names(row)}")
    for meaning in ("human", "model"):
        free = [name for name in EITHER if name in row and name not in found.values()]
        if meaning not in found and len(free) == 1:
            found[meaning] = free[0]
    for meaning, whose in (("human", "human's"), ("model", "verifier's")):
        if meaning not in found:
            odd = [f"{name} is {row[name]!r:.40}" for name in COLUMNS[meaning] if name in row]
            raise DataError(
                f"no column has the {whose} grade for certain; the file has {_names(row)}"
                f"{f' ({odd[0]}, which is no grade)' if odd else ''}. Name it by --column {meaning}=COLUMN"
            )
    return found


def _names(row: Mapping[str, Any]) -> str:
    return ", ".join(map(str, row))[:300] or "no columns"


def _fits(name: str, value: object) -> bool:
    """Whether a column may hold what its name says."""
    return (
        name not in NAMES
        or value in (None, "")
        or isinstance(value, list)
        or number_of(value) is not None
        or _listed(value) is not None
    )


def _listed(value: object) -> list[Any] | None:
    """A list, also one written as text, as CSV files have it."""
    if isinstance(value, str) and value.strip().startswith("[") and len(value) < 100_000:
        try:
            value = load_json(value)
        except ValueError:
            return None
    return value if isinstance(value, list) else None


def _number(value: object, where: str, column: str) -> float | None:
    text = str(value).strip().casefold()
    if value is None or (isinstance(value, str | float) and text in ("", "null", "none", "nan")):
        return None
    number = number_of(value)
    if number is None:
        raise DataError(f"{where}: its {column} is {value!r:.60}; expected a number, or empty")
    return number


def _several(value: object, where: str, column: str) -> tuple[float | None, ...]:
    listed = _listed(value)
    if listed is None:
        return (_number(value, where, column),)
    if len(listed) > MOST_VOTES:
        raise DataError(f"{where}: its {column} has {len(listed)} grades; expected at most {MOST_VOTES}")
    return tuple(_number(one, where, column) for one in listed)


def _sample(row: _Row, given: object) -> int:
    number = number_of(given)
    if number is None or number < 0 or number != int(number) or len(row.model) > 1:
        raise DataError(
            f"{row.where}: its sample is {given!r:.60}; expected a whole number from 0, and one grade in the row"
        )
    return int(number)


def _full(rows: Sequence[_Row], points: float | None) -> tuple[float, str]:
    """Full points, and whence they are known."""
    if points is not None:
        if not 0 < points < math.inf:
            raise ConfigError(f"the full points are {points:g}; expected a number above 0")
        return points, "as given"
    own = Counter(row.most for row in rows if row.most is not None)
    if own:
        return max(own, key=lambda one: (own[one], one)), "the most frequent maximum of its rows"
    largest = max((row.human for row in rows if row.human is not None), default=0.0)
    if not largest > 0:
        raise DataError("no human grade is above 0, so full points are unknown; give --points N")
    return largest, "the largest human grade; give --points N if they are others"


def _model_scale(rows: Sequence[_Row], column: str, full: float) -> tuple[float | None, str]:
    """Full points of the verifier's grades where they are another scale than the human's, and how that is known."""
    if column in SHARES:
        return 1.0, f"since {column} is a share"
    given = [one for row in rows for one in row.model if one is not None]
    if full > 1 and given and max(given) <= 1 and any(one != int(one) for one in given):
        return 1.0, "since none is above 1 and some are not whole; give --model-points N if they are points"
    return None, ""


def _share(row: _Row, what: str, value: float | None, most: float, remedy: str) -> float | None:
    if value is None:
        return None
    if not 0 <= value <= most + NEAR:
        raise DataError(f"{row.where}: the {what} is {value:g}; expected 0 to {most:g}{remedy}")
    return min(1.0, value / most)


def _pair(row: _Row, human: float | None, place: int, *, named: bool) -> Pair:
    """The pair of a row. Without an id it is named by question, proof and human grade, without a proof by its place."""
    proof = row.values.get("proof")
    text = proof if isinstance(proof, str) else "" if proof is None else json.dumps(proof, default=str)
    asked = str(row.values.get("question") if row.values.get("question") is not None else "").strip()
    own = str(row.values.get("pair") if row.values.get("pair") is not None else "").strip()
    alone = own or (content_id("pair", asked, text, human) if text.strip() else f"row {place + 1}")
    if named and not asked:
        raise DataError(f"{row.where}: its question is empty; give each row one, or leave the column out")
    return Pair(pair_id=alone, question_id=asked or alone, label=None, proof=text, grade=human)


def _allowed(humans: Sequence[float], full: float) -> tuple[float, ...]:
    """Grades of equal steps from 0 to full points that hold all human grades."""
    for step in STEPS:
        whole = [value / step for value in (*humans, full)]
        if 0.5 < full / step <= 1000 and all(abs(one - round(one)) < 1e-6 for one in whole):
            return tuple(round(place * step, 9) for place in range(round(full / step) + 1))
    raise DataError(
        f"the human grades up to {full:g} have no common step; name the allowed ones by --grades, for example "
        "--grades 0,0.5,1"
    )
