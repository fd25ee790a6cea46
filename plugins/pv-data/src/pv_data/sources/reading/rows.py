"""Rows of a source's files. A row that cannot be read is rejected with its reason, and the next is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from pv_data.records import Aside
from pv_data.sources.reading.fields import LONGEST, Fields
from pv_data.sources.reading.unusable import SHOWN, aside
from pv_judge.rowfiles import BadRow, open_rows
from pv_judge.rowfiles.files import suffix_of

__all__ = ["PLACE", "TABLES", "read_rows"]

TABLES = (".jsonl", ".json", ".csv", ".parquet")
"""Kinds of files that hold rows."""
PLACE: ContextVar[str] = ContextVar("PLACE", default="")
"""Where the row is that was read last: what a source gives next is of this row."""
LONGEST_LINE = 8 * LONGEST
"""Bytes of a JSON line: several texts, and characters that take more than one."""


def read_rows(path: Path, within: str = "") -> Iterator[Fields | Aside]:
    """Each row as fields.

    Args:
        path: of the file.
        within: see `open_rows`.

    Raises:
        DataError: the file as a whole cannot be read.
    """
    longest = LONGEST if suffix_of(path) == ".csv" else LONGEST_LINE
    for row in open_rows(path, suffixes=TABLES, longest=longest, within=within).scan():
        where = f"{path.name}:{row.number}"
        PLACE.set(where)
        if isinstance(row, BadRow):
            yield aside(where, row.reason, row.detail, row.content[: 4 * SHOWN])
        else:
            yield Fields(where=where, values=row.values)
