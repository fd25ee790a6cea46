"""Runs to be audited, and sheets that are filled in."""

from __future__ import annotations

import csv
from pathlib import Path

from pv_data.records import Label, Problem, Proof
from pv_data.table import write_part


def write_run(folder: Path, problems: list[Problem], proofs: list[Proof], unlabelled: int = 0) -> None:
    """Tables of a run; the judges take all proofs for right, and differ on the first `unlabelled`."""
    labels = [
        Label(
            proof_id=proof.id,
            problem_id=proof.problem_id,
            slice=proof.slice,
            value=True if n >= unlabelled else None,
            rule="unanimous 1 of 1",
            votes=(True,),
            judges=("j",),
        )
        for n, proof in enumerate(proofs)
    ]
    write_part(folder / "problems" / "0.parquet", Problem, problems)
    write_part(folder / "proofs" / "0.parquet", Proof, proofs)
    write_part(folder / "labels" / "0.parquet", Label, labels)


def pilot_run(folder: Path, questions: int = 100, models: str = "ab", each: int = 8) -> list[Problem]:
    """Slices of `each` proofs a question."""
    problems = [Problem(source="S", native_id=str(n), text=f"Prove {n}.") for n in range(questions)]
    proofs = [
        Proof(
            problem_id=problem.id,
            source="S",
            method="proof",
            model=model,
            text=f"{n} by {model}: {problem.id}",
        )
        for problem in problems
        for model in models
        for n in range(each)
    ]
    write_run(folder, problems, proofs)
    return problems


def fill(sheet: Path, said) -> None:
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"right": said(number, row)} for number, row in enumerate(rows))
