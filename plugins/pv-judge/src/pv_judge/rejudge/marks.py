"""Human marks: a .csv or .jsonl file with whether rows are anomalous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pv_judge.rejudge.rows import OldRow
from pv_judge.rowfiles import open_rows
from pv_rl.errors import DataError

__all__ = ["add_marks"]

MARKS = ("anomalous", "human")
PLACES = ("uid", "session", "step")


def add_marks(rows: Sequence[OldRow], path: Path) -> tuple[list[OldRow], int]:
    """The rows with the marks of a file, and how many marks are of no row.

    A line has `anomalous` (or `human`): true, false, 1 or 0, or empty for not marked. It names its row by `row_id`, or
    by those of `uid`, `session` and `step` that it has.

    Raises:
        DataError: a line that cannot be read, two marks that differ, or a name that fits several rows.
        OSError: the file cannot be read.
    """
    marks = _read(path)
    if not marks:
        raise DataError(
            f"{path} has no marks; give at least one line with {' or '.join(MARKS)} true or false"
        )
    names = next(iter(marks))[0::2]
    places: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(rows):
        key = tuple(part for name in names for part in (name, str(getattr(row, name))))
        if places.setdefault(key, number) != number and key in marks:
            raise DataError(
                f"{path}: {_said(key)} fits several rows of the ledger; name them by row_id, or add "
                f"{' and '.join(name for name in PLACES if name not in names) or 'row_id'}"
            )
    marked = list(rows)
    lost = 0
    for key, human in marks.items():
        if key in places:
            marked[places[key]] = replace(rows[places[key]], human=human)
        else:
            lost += 1
    if lost == len(marks):
        raise DataError(
            f"{path}: none of its marks is of a row of the ledger; the first is of {_said(next(iter(marks)))}"
        )
    return marked, lost


def _read(path: Path) -> dict[tuple[str, ...], bool]:
    """By (name, value, name, value ...) of the row."""
    marks: dict[tuple[str, ...], bool] = {}
    names: tuple[str, ...] = ()
    for row in open_rows(path, suffixes=(".csv", ".jsonl")).rows():
        line = row.values
        names = names or (("row_id",) if "row_id" in line else tuple(name for name in PLACES if name in line))
        column = next((name for name in MARKS if name in line), None)
        if column is None or not names or not all(name in line for name in names):
            raise DataError(
                f"{row.where} needs {' or '.join(MARKS)}, and row_id or uid, session and step; "
                f"it has {', '.join(map(str, line)) or 'nothing'}"
            )
        human = _flag(line[column], row.where)
        if human is None:
            continue
        key = tuple(part for name in names for part in (name, str(line[name])))
        if marks.setdefault(key, human) != human:
            raise DataError(f"{row.where}: {_said(key)} is marked twice, and differently")
    return marks


def _flag(value: Any, where: str) -> bool | None:
    text = "" if value is None else str(value).strip().casefold()
    known = {"true": True, "1": True, "false": False, "0": False, "": None}
    if text not in known:
        raise DataError(f"{where}: the mark is {value!r}; give true or false, or nothing")
    return known[text]


def _said(key: Sequence[str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(key[0::2], key[1::2], strict=True))
