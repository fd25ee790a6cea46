"""Rows of a plain file, each with the words for its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pv_judge.rowfiles import SUFFIXES, open_rows

__all__ = ["SUFFIXES", "read_rows"]


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row of a file of JSON lines, JSON, CSV or Parquet as its place and a mapping from column to value.

    Raises:
        DataError: the file is missing or of another kind, or a row cannot be read. The text says where.
    """
    table = open_rows(path)
    for row in table.rows():
        yield f"{table.unit} {row.number} of {path.name}", row.values
