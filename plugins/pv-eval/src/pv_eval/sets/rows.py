"""Rows of a plain file, each with the words for its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pv_judge.rowfiles import SUFFIXES, BadRow, Row, open_rows
from pv_judge.rowfiles.files import not_utf8, suffix_of
from pv_judge.rowfiles.text import ESCAPED

__all__ = ["SUFFIXES", "read_rows", "scan_rows"]


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row of a file of JSON lines, JSON, CSV or Parquet as its place and a mapping from column to value.

    Raises:
        DataError: the file is missing or of another kind, or a row cannot be read. The text says where.
    """
    table = open_rows(path)
    for row in table.rows():
        yield f"{table.unit} {row.number} of {path.name}", row.values


def scan_rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """As `read_rows`; for a row that cannot be read, its place and the reason in a few words.

    Raises:
        DataError: the file as a whole cannot be read.
    """
    table = open_rows(path)
    text = suffix_of(path) == ".csv"
    for row in table.scan():
        if text and isinstance(row, Row):
            for line, cells in ((1, row.values.keys()), (row.number, row.values.values())):
                if ESCAPED.search("".join(cells)):
                    raise not_utf8(path, line)
        place = f"{table.unit} {row.number} of {path.name}"
        yield place, row.reason if isinstance(row, BadRow) else row.values
