"""Rows of a CSV file, which is read twice.

A quotation mark too many moves every cell behind it, so a file whose quotes are not balanced is refused as a whole, and
before its first row is given away.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from pv_data.records import Aside
from pv_data.sources.reading.fields import LONGEST, Fields
from pv_data.sources.reading.files import opened
from pv_data.sources.reading.unusable import aside
from pv_rl.errors import DataError

__all__ = ["read_csv"]


def read_csv(path: Path) -> Iterator[Fields | Aside]:
    """Each row as fields; a row with too many or too few cells is set aside.

    Raises:
        DataError: the first line does not name the columns, each once; or the rows cannot be told apart.
    """
    for _ in _cells(path):
        pass
    rows = _cells(path)
    _, names = next(rows, (0, []))
    if not names or len(set(names)) < len(names) or any("\x00" in name for name in names):
        raise DataError(f"{path} has no first line of column names, each once; give it one")
    for line, row in rows:
        where = f"{path.name}:{line}"
        if not row:
            continue
        if len(row) != len(names):
            yield aside(where, "cells", f"{len(row)} cells under {len(names)} columns", ",".join(row))
        else:
            yield Fields(where=where, values=dict(zip(names, row, strict=True)))


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    # never lowered again: another reader may be between two rows of its own
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    with opened(path) as file:
        # bytes that are no UTF-8 pass as lone surrogates, which the check of the cell finds
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.reader(_lines(text, path), strict=True)
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: no CSV that can be read ({error}); is a quotation mark missing or "
                "not doubled?"
            ) from error


def _lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := text.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise DataError(f"{path}, line {number} has more than {LONGEST} characters; take it out")
        yield line
