"""Audit sheets of a run: CSV files with the proofs to read next, and the marks that people gave."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pv_data.audit import Drawn, Rounds, SliceState, read_audit, slice_states
from pv_data.audit.marks import latest_marks
from pv_data.export.distribution import no_formula
from pv_data.records import AuditMark, Label, Proof, content_id
from pv_data.run.reading_list import (
    ANSWERS,
    MARKS,
    agreed_labels,
    all_marks,
    check_name,
    reading_list,
    time_after,
)
from pv_data.sources.reading.label_map import WORDS
from pv_data.table import read_rows, write_part
from pv_judge.files import write_atomically
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = ["SheetMarks", "draw_sheet", "empty_rows", "record_sheet", "standing"]


COLUMNS = ("proof_id", "round", "problem", "proof", "right", "note")
EARLIER = "earlier"
"""Column of a third reader's sheet."""
SAID: dict[str, bool | None] = {**WORDS, "y": True, "n": False, "cannot tell": None, "?": None}
WORDS = re.compile(r"[\W_]+")
LONGEST_CELL = 32_000
"""Characters; spreadsheets keep up to 32,767."""
ROUND = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)
MOST = 10
"""Wrong rows that an error names."""


@dataclass(frozen=True, kw_only=True)
class SheetMarks:
    """What was recorded of a sheet."""

    marks: int
    replaced: int
    """Of these, those that differ from an earlier mark of the same person on the same proof."""


def standing(run: Path, rounds: Rounds | None = None) -> dict[str, SliceState]:
    """Where each slice of a run stands, from the marks that were recorded."""
    found = read_audit(run)
    return slice_states(found.marks.values(), found.sizes, rounds)


def draw_sheet(
    run: Path,
    sheet: Path,
    *,
    third: bool = False,
    pilot: float = 0.05,
    seed: int = 0,
    rounds: Rounds | None = None,
) -> Drawn:
    """Write the proofs that are to be read next as a sheet, one proof a row, in random order; returns which.

    Args:
        run: the run's folder.
        sheet: the file that is written. Where nothing is to be read, none is. A file that is there is overwritten only
            if it is a sheet of this run without a mark.
        third: see `reading_list`, as for the rest.
        pilot: part of each source's questions.
        seed: of the pilot and of the sample.
        rounds: None: the paper's.

    Raises:
        DataError: the file is there and has marks or is something else, or the run has no labels.
        ConfigError: no such part.
    """
    if sheet.exists() and not _is_unmarked(sheet, run):
        raise DataError(
            f"{sheet} exists, and is no sheet of this run without marks. Record it (pv-data audit record) and choose "
            "another file"
        )
    drawn, wanted = reading_list(run, third=third, pilot=pilot, seed=seed, rounds=rounds)
    if not wanted:
        return drawn
    columns = [*COLUMNS[:4], EARLIER, *COLUMNS[4:]] if third else COLUMNS
    rows: list[list[Any]] = []
    for one in wanted:
        seen = [_earlier(one.earlier)] if third else []
        rows.append([one.proof_id, one.round, *map(no_formula, (one.problem, one.proof)), *seen, "", ""])
    text = io.StringIO()
    csv.writer(text).writerows([columns, *rows])
    write_atomically(sheet, lambda path: path.write_text(text.getvalue(), encoding="utf-8", errors="replace"))
    return drawn


def _is_unmarked(sheet: Path, run: Path) -> bool:
    """Whether a file is a sheet of this run in which nobody has written."""
    try:
        rows = _rows(sheet)
    except DataError:
        return False
    labels = agreed_labels(run)
    return all(
        row["proof_id"] in labels and not ((row["right"] or "") + (row["note"] or "")).strip() for row in rows
    )


def _earlier(marks: Iterable[AuditMark]) -> str:
    """What the readers before found, without their names."""
    return "\n".join(
        f"{number}. {ANSWERS[mark.human]}{''.join(f'; {text}' for text in (mark.fault, mark.step, mark.note) if text)}"
        for number, mark in enumerate(marks, start=1)
    )


def record_sheet(run: Path, sheet: Path, auditor: str) -> SheetMarks:
    """Add the marks of a sheet to the run; rows whose `right` is empty are left for later.

    Raises:
        DataError: rows that are not understood, or a third reader's sheet with a mark of one of the first two; then
            nothing is recorded.
    """
    if not auditor.strip():
        raise DataError("the auditor is empty. Give a name, so that somebody can be asked about the marks")
    auditor = auditor.strip()
    labels, before = agreed_labels(run), all_marks(run)
    check_name(auditor, (mark.auditor for mark in before))
    latest = latest_marks(mark for mark in before if mark.auditor == auditor)
    own = {proof: mark for proof, (mark,) in latest.items()}
    now = time_after(mark.time for mark in before)
    rows = _rows(sheet)
    marked = [(number, row) for number, row in enumerate(rows, start=2) if (row["right"] or "").strip()]
    said_of = {row["proof_id"] for _, row in marked}
    texts = {
        one.id: one.text for one in read_rows([run / "proofs", run / "generated"], Proof) if one.id in said_of
    }
    marks, wrong = list[AuditMark](), list[str]()
    for number, row in marked:
        label = labels.get(row["proof_id"] or "")
        if why := _wrong(row, label, texts, own, auditor):
            wrong.append(f"row {number}: {why}")
        elif label is not None:
            marks.append(
                AuditMark(
                    proof_id=label.proof_id,
                    problem_id=label.problem_id,
                    slice=label.slice,
                    auditor=auditor,
                    round=int(row["round"] or 1),
                    label=bool(label.value),
                    human=SAID[(row["right"] or "").strip().lower()],
                    note=row["note"] or "",
                    time=now,
                    third=EARLIER in row,
                )
            )
    if len(wrong) == 1:
        raise DataError(f"{sheet}, {wrong[0]}. Nothing was recorded")
    if wrong:
        rest = [f"and {len(wrong) - MOST} more"] if len(wrong) > MOST else []
        lines = "\n  ".join([*wrong[:MOST], *rest])
        raise DataError(f"{sheet}: {len(wrong)} rows are wrong, and nothing was recorded:\n  {lines}")
    twice = [proof for proof, count in Counter(mark.proof_id for mark in marks).items() if count > 1]
    if twice:
        raise DataError(
            f"{sheet} has {plural(len(twice), 'proof')} more than once, {twice[0]} for one; leave each one row"
        )
    if marks:
        name = f"{now.replace(':', '')}-{content_id('sheet', auditor, *(mark.id for mark in marks))}.parquet"
        write_part(run / MARKS / name, AuditMark, marks)
    replaced = sum(mark.proof_id in own and own[mark.proof_id].human != mark.human for mark in marks)
    return SheetMarks(marks=len(marks), replaced=replaced)


def _wrong(
    row: Mapping[str, str | None],
    label: Label | None,
    texts: Mapping[str, str],
    own: Mapping[str, AuditMark],
    auditor: str,
) -> str:
    """Why a row cannot be recorded; empty if it can."""
    if label is None:
        return f"no proof of this run with a label has the id {row['proof_id']!r}"
    if (row["right"] or "").strip().lower() not in SAID:
        return f"right is {row['right']!r}; give yes, no or cannot tell"
    if not ROUND.fullmatch(row["round"] or ""):
        return f"round is {row['round']!r}; give the number that the sheet was drawn with, 1 or more"
    if not _same_text(row["proof"] or "", texts.get(label.proof_id, "")):
        return (
            f"the proof is not the text of {label.proof_id}; rows may have been mixed by sorting one column. Draw the "
            "sheet again, and copy the marks into it"
        )
    third = EARLIER in row
    if label.proof_id in own and own[label.proof_id].third != third:
        return (
            f"{auditor} has read this proof before, and a third reader is somebody else. Give the sheet to another "
            "person"
        )
    return ""


def empty_rows(sheet: Path) -> int:
    """How many rows of a sheet have nothing in `right`; a `DataError` as `record_sheet` raises it."""
    return sum(not (row["right"] or "").strip() for row in _rows(sheet))


def _same_text(shown: str, text: str) -> bool:
    """Whether a cell has a proof. A spreadsheet may change its spaces, and cut what is longer than a cell."""
    cell, whole = (WORDS.sub("", one) for one in (shown, text))
    return cell == whole or (len(shown) >= LONGEST_CELL and whole.startswith(cell))


def _rows(sheet: Path) -> list[dict[str, str | None]]:
    if not sheet.exists():
        raise DataError(f"{sheet} does not exist; give a sheet of pv-data audit draw")
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
