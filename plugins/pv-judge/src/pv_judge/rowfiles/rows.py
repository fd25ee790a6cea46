"""Row file: a file of rows, read one row at a time, each with its place for errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pv_rl.errors import DataError

__all__ = ["LONGEST_ROW", "BadRow", "Kind", "Reduction", "Row", "RowFile"]

Kind = Literal["number", "flag", "text", "list", "empty", "other"]
"""What a column holds. `empty`: null where we looked, so it may be anything."""
Reduction = Literal["sum", "count"]
"""How a list becomes a number: a mask of 0 and 1 is summed, token ids are counted."""
LONGEST_ROW = 20_000_000
"""Bytes of a JSON line, characters of a CSV line. A longer one is a mistake and never read into memory."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row."""

    number: int
    """From 1: the line of a text file, else the row."""
    values: dict[str, Any]
    """By column."""
    file: RowFile = field(repr=False)

    @property
    def where(self) -> str:
        """`line 3 of FILE`, for errors."""
        return f"{self.file.unit} {self.number} of {self.file.path}"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be read. The rows behind it can."""

    number: int
    reason: str
    """A few words, to count by: `not JSON`, `giant row`, ..."""
    detail: str
    content: str = ""
    """The beginning of the row."""


class RowFile(ABC):
    """A file of rows. Make one with `open_rows`.

    Args:
        path: a regular file.
        longest: the longest row that is read; see `LONGEST_ROW`.
    """

    unit = "row"
    """What `Row.number` counts."""

    def __init__(self, path: Path, *, longest: int = LONGEST_ROW) -> None:
        self.path = path
        self.longest = longest

    def rows(
        self, columns: Sequence[str] | None = None, lists: Mapping[str, Reduction] | None = None
    ) -> Iterator[Row]:
        """Each row.

        Args:
            columns: columns to read, which each row needs to have; None for whatever a row has.
            lists: columns of lists to read as one number.

        Raises:
            DataError: a row cannot be read, has no such column, or a list is not what its reduction needs.
            SetupError: a package is missing that this kind of file needs.
        """
        for row in self._scan(columns, lists or {}, exact=False):
            if isinstance(row, BadRow):
                raise DataError(
                    f"{self.unit} {row.number} of {self.path}: {row.reason} ({row.detail}). "
                    f"Correct the {self.unit}, or take it out"
                )
            yield row

    def scan(self) -> Iterator[Row | BadRow]:
        """Each row, also those that cannot be read: for a reader that sets these apart and continues.

        Here a JSON row with NaN, or with a key twice, is bad: it may mean two things. In a CSV file, bytes that are
        not UTF-8 become lone surrogates.

        Raises:
            DataError: the file as a whole cannot be read.
            SetupError: a package is missing that this kind of file needs.
        """
        return self._scan(None, {}, exact=True)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The columns and what they hold; without a schema, what the first row holds.

        Raises:
            DataError: the file has no row, or the first cannot be read.
        """
        first = next(self.rows(), None)
        if first is None:
            raise self._empty()
        return {name: _kind(value) for name, value in first.values.items()}

    @abstractmethod
    def _scan(
        self, columns: Sequence[str] | None, lists: Mapping[str, Reduction], *, exact: bool
    ) -> Iterator[Row | BadRow]: ...

    def _empty(self) -> DataError:
        return DataError(f"{self.path} is empty; give a file with at least one row")


def _kind(value: Any) -> Kind:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "other"
