"""`graded`, `proofbench`, `gradingbench`: proofs that people gave points, made right or wrong by a rule.

ProofBench (https://huggingface.co/datasets/wenjiema02/ProofBench, MIT): problem_id, problem, generator, model_solution,
expert_rating of 0 to 7. IMO-GradingBench (https://github.com/google-deepmind/superhuman, imobench/gradingbench.csv,
CC-BY-4.0): Grading ID, Problem ID, Problem, Response, Points of 0 to 7. The paper takes 7 of 7 for right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pv_data.records import content_id
from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.sets.columns import chosen, number_of, question_id, text_of
from pv_eval.sets.rows import read_rows
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError

__all__ = ["PointRule", "read_graded", "read_gradingbench", "read_proofbench"]

NAMES: Mapping[str, tuple[str, ...]] = {
    "pair_id": ("Grading ID", "grading_id", "pair_id"),
    "question_id": ("problem_id", "Problem ID", "problem_idx"),
    "problem": ("problem", "Problem", "question"),
    "proof": ("model_solution", "Response", "proof", "response"),
    "points": ("expert_rating", "Points", "human_rating", "score", "grade", "points"),
    "max": ("max_rating", "max_points", "max_score"),
    "model": ("generator", "model", "model_id"),
}
NEEDED = ("problem", "proof", "points")


@dataclass(frozen=True, kw_only=True)
class PointRule:
    """Which points make a proof right, and which wrong."""

    most: float = 7.0
    """Points of a perfect proof, where the row does not say."""
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
                f"positive={self.positive!r}, negative={self.negative!r}; they obey 0 <= negative < positive <= "
                f"max = {self.most:g}"
            )

    def label(self, points: float, most: float) -> bool | None:
        """The label; both numbers as the row has them."""
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
        max: see `PointRule`, as are positive and negative; a column max_rating of the file goes before it.
        columns: column by meaning, where it is called otherwise; see `NAMES`.
        name: of the set; the file's unless given.
    """
    rule = PointRule(most=max, positive=positive, negative=negative)
    return build_set(name or path.stem, _rows(path, rule, columns or {}))


def read_proofbench(path: Path, *, positive: float | None = None, negative: float | None = None) -> EvalSet:
    """ProofBench; its test split, as the paper took it, has 435 pairs of 145 questions."""
    return read_graded(path, positive=positive, negative=negative, name="proofbench")


def read_gradingbench(path: Path, *, positive: float | None = None, negative: float | None = None) -> EvalSet:
    """IMO-GradingBench, 1,000 gradings."""
    return read_graded(path, positive=positive, negative=negative, name="gradingbench")


def _rows(path: Path, rule: PointRule, columns: Mapping[str, str]) -> Iterator[Candidate | LeftOut]:
    found: dict[str, str] | None = None
    for where, row in read_rows(path):
        if found is None:
            found = chosen(row, NAMES, columns, NEEDED)
        yield _candidate(where, {meaning: row.get(column) for meaning, column in found.items()}, rule)


def _candidate(where: str, row: Mapping[str, Any], rule: PointRule) -> Candidate | LeftOut:
    problem, proof = text_of(row["problem"]), text_of(row["proof"])
    if problem is None or proof is None:
        return LeftOut(row=where, reason="question or proof is no text")
    points, most = number_of(row["points"]), number_of(row.get("max", rule.most))
    if points is None or most is None:
        return LeftOut(row=where, reason="points are no number")
    if not 0 <= points <= most or not most > 0:
        return LeftOut(row=where, reason="points out of range")
    label = rule.label(points, most)
    if label is None:
        return LeftOut(row=where, reason="points between right and wrong")
    asked = str(row["question_id"]) if row.get("question_id") not in (None, "") else question_id(problem)
    model = text_of(row.get("model")) or ""
    given = text_of(row.get("pair_id")) or ""
    return Candidate(
        pair=Pair(
            pair_id=given.strip() or content_id("pair", asked, model, proof),
            question_id=asked,
            label=label,
            slice=model,
            question=problem,
            proof=proof,
        ),
        rule=str(rule),
    )
