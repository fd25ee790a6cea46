"""Audit sheets of a run: which proofs to read next, and the marks that people gave.

A sheet is a CSV file with one proof a row, in random order. It has neither the panel's label nor the slice: a reader
who knows how a proof was made, or what judges think of it, reads differently.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pv_data.audit import Drawn, Rounds, SliceState, draw, read_audit, slice_states
from pv_data.export.distribution import no_formula
from pv_data.records import AuditMark, Label, Problem, Proof, content_id
from pv_data.table import read_rows, write_part
from pv_judge.files import write_atomically
from pv_rl.errors import DataError

__all__ = ["draw_sheet", "record_sheet", "standing"]


MARKS = "marks"
COLUMNS = ("proof_id", "round", "problem", "proof", "right", "note")
SAID = {
    "true": True,
    "yes": True,
    "right": True,
    "1": True,
    "false": False,
    "no": False,
    "wrong": False,
    "0": False,
}
ROUND = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)


def standing(run: Path, rounds: Rounds | None = None) -> dict[str, SliceState]:
    """Where each slice of a run stands, from the marks that were recorded."""
    found = read_audit(run)
    return slice_states(found.marks.values(), found.sizes, rounds)


def draw_sheet(
    run: Path, sheet: Path, *, pilot: float = 0.05, seed: int = 0, rounds: Rounds | None = None
) -> Drawn:
    """Write the proofs that are to be read next, of all slices that are still open; returns which.

    Args:
        run: the run's folder.
        sheet: the file that is written; one that is there is not overwritten.
        pilot: part of each source's questions, from which all slices' proofs are drawn; 1: of all.
        seed: of the pilot and of the sample; the same for all rounds of a run, each of which contains the one before.
        rounds: None: the paper's.

    Raises:
        DataError: the file is there, or the run has no labels.
        ConfigError: no such part.
    """
    if sheet.exists():
        raise DataError(f"{sheet} exists. Record it (pv-data audit record) and choose another file")
    audit, labels = read_audit(run), _labels(run)
    problems = {problem.id: problem for problem in read_rows(run / "problems", Problem)}
    of_slice = defaultdict[str, dict[str, str]](dict)
    for one in labels.values():
        of_slice[one.slice][one.proof_id] = one.problem_id
    drawn = draw(
        slice_states(audit.marks.values(), audit.sizes, rounds).values(),
        of_slice,
        audit.marks,
        _questions(problems.values(), labels.values()),
        touched=problems.keys() & {mark.problem_id for mark in read_rows(run / MARKS, AuditMark)},
        pilot=pilot,
        seed=seed,
    )
    wanted = drawn.proofs
    rows: list[list[Any]] = []
    for proof in read_rows([run / "proofs", run / "generated"], Proof):
        if proof.id in wanted:
            problem = problems.get(proof.problem_id)
            texts = (problem.text if problem else "(gone)", proof.text)
            rows.append([proof.id, wanted[proof.id], *map(no_formula, texts), "", ""])
    rows.sort(key=lambda row: content_id("sheet", seed, row[0]))
    text = io.StringIO()
    csv.writer(text).writerows([COLUMNS, *rows])
    write_atomically(sheet, lambda path: path.write_text(text.getvalue(), encoding="utf-8", errors="replace"))
    return drawn


def record_sheet(run: Path, sheet: Path, auditor: str) -> int:
    """Add the marks of a sheet to the run; rows whose `right` is empty are left for later. Returns how many.

    Raises:
        DataError: a row that is not understood; then nothing is recorded.
    """
    if not auditor.strip():
        raise DataError("the auditor is empty. Give a name, so that somebody can be asked about the marks")
    labels, now = _labels(run), _later(run)
    marks = []
    for number, row in enumerate(_rows(sheet), start=2):
        where = f"{sheet}, row {number}"
        said = (row["right"] or "").strip().lower()
        if not said:
            continue
        label = labels.get(row["proof_id"] or "")
        if label is None:
            raise DataError(f"{where}: no proof of this run with a label has the id {row['proof_id']!r}")
        if said not in SAID or not ROUND.fullmatch(row["round"] or ""):
            raise DataError(
                f"{where}: right is {row['right']!r} and round {row['round']!r}; give yes or no, and 1 or more"
            )
        marks.append(
            AuditMark(
                proof_id=label.proof_id,
                problem_id=label.problem_id,
                slice=label.slice,
                auditor=auditor.strip(),
                round=int(row["round"] or 1),
                label=bool(label.value),
                human=SAID[said],
                note=row["note"] or "",
                time=now,
            )
        )
    twice = [proof for proof, count in Counter(mark.proof_id for mark in marks).items() if count > 1]
    if twice:
        raise DataError(
            f"{sheet} has {len(twice)} proofs more than once, {twice[0]} for one; leave each one row"
        )
    if marks:
        name = f"{now.replace(':', '')}-{content_id('sheet', auditor, *(mark.id for mark in marks))}.parquet"
        write_part(run / MARKS / name, AuditMark, marks)
    return len(marks)


def _later(run: Path) -> str:
    """The time, or a moment after the last mark where the clock went back: the later word counts."""
    last = max((mark.time for mark in read_rows(run / MARKS, AuditMark)), default="")
    now = datetime.now(timezone.utc)
    if last and now <= (before := datetime.fromisoformat(last)):
        now = before + timedelta(microseconds=1)
    return now.isoformat()


def _rows(sheet: Path) -> list[dict[str, str | None]]:
    try:
        with sheet.open(encoding="utf-8-sig", newline="") as file:
            csv.field_size_limit(2**31 - 1)  # a cell holds a proof
            reader = csv.DictReader(file, strict=True)
            rows, columns = list(reader), reader.fieldnames or ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{sheet} cannot be read as a sheet ({error}); save it as CSV in UTF-8") from error
    missing = set(COLUMNS) - set(columns)
    if missing:
        raise DataError(
            f"{sheet} has no column {', '.join(sorted(missing))}; fill in a sheet of pv-data audit draw, and save it "
            "with commas between the cells"
        )
    return rows


def _labels(run: Path) -> dict[str, Label]:
    """Those on which the judges agree, by proof id."""
    return {one.proof_id: one for one in read_rows(run / "labels", Label) if one.value is not None}


def _questions(problems: Iterable[Problem], labels: Iterable[Label]) -> dict[str, set[str]]:
    """Ids by source; a problem that is gone is one of the source of its proofs."""
    found, known = defaultdict[str, set[str]](set), set[str]()
    for problem in problems:
        found[problem.source].add(problem.id)
        known.add(problem.id)
    for label in labels:
        if label.problem_id not in known:
            found[label.slice.partition("/")[0]].add(label.problem_id)
    return found
