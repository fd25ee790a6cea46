"""Source `opc`, the Open Proof Corpus: models' proofs of competition problems, marked by people.

Dekoninck et al., 2025, https://github.com/insait-institute/open-proof-corpus, Apache-2.0. Two forms: a column each for
problem_id, problem, proof, model_id and `label` (`correct` or `incorrect`); and the published Parquet files, which have
problem and proof in a judge's prompt and the label in `reward_model.ground_truth`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof
from pv_data.sources.reading.assemble import assemble, attempt, reference
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.form import Form
from pv_data.sources.reading.rows import TABLES
from pv_data.sources.reading.unusable import Unusable, aside

__all__ = ["read"]

LABELS = {"correct": True, "incorrect": False}
PUBLISHED = Form(
    columns={
        "label": "reward_model.ground_truth",
        "model": "model_id",
        "id": "problem_id",
        "url": "metadata.source?",
    },
    cut={"prompt": "### Problem Statement:{problem}### Model Solution:{proof}"},
    labels=LABELS,
    source="OPC",
    licence="Apache-2.0",
    known_by="human: correct or incorrect",
)


def read(path: Path, *, references: bool = True) -> Read:
    """Problems, their reference solution, and the proofs of models with people's label.

    Args:
        references: whether the reference solutions are given too.
    """
    yield from assemble(
        path,
        TABLES,
        lambda row: (_published if _is_published(row) else _rows)(row, references),
        repeats=(GROUND_TRUTH,),
    )


def _is_published(row: Fields) -> bool:
    return "prompt" in row.values and "proof" not in row.values


def _published(row: Fields, references: bool) -> Iterator[Problem | Proof | Aside]:
    for made in PUBLISHED.rows(row):
        yield made
        if isinstance(made, Problem) and references:
            yield from _solutions(row, made)


def _solutions(row: Fields, problem: Problem) -> Iterator[Proof | Aside]:
    """The solutions to which the annotators had no objection: an `issue` may be that a step is not proven."""
    given = row.values.get("solutions")
    if given is not None and not isinstance(given, list):
        yield aside(f"{row.where}:solutions", "not a list: solutions")
        return
    for number, one in enumerate(given or []):
        solution = Fields(
            where=f"{row.where}:solutions[{number}]", values=one if isinstance(one, dict) else {}
        )
        if issue := solution.values.get("issue"):
            yield aside(solution.where, "reference with an issue", str(issue)[:400])
        else:
            yield attempt(
                solution.where, lambda solution=solution: reference(problem, solution.text("solution"))
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
