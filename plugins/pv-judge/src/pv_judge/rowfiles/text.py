"""Row files of text: JSON lines, JSON and CSV. Memory is bounded by the longest row, for JSON by the file's size."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pv_judge.files import load_json
from pv_judge.pages.text import plural
from pv_judge.rowfiles.files import not_utf8, opened
from pv_judge.rowfiles.rows import LONGEST_ROW, BadRow, Reduction, Row, RowFile
from pv_rl.errors import DataError

__all__ = ["ESCAPED", "Csv", "Json", "JsonLines"]

LONGEST_JSON = 256 * 2**20
"""Bytes of a .json file, which is read as a whole."""
SHOWN = 8000
"""Bytes of a bad row that are kept to show it."""
ESCAPED = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as `surrogateescape` gives them."""
BOM = b"\xef\xbb\xbf"


class JsonLines(RowFile):
    """A `.jsonl` file, one object a line. Blank lines are skipped."""

    unit = "line"

    def _scan(
        self, columns: Sequence[str] | None, lists: Mapping[str, Reduction], *, exact: bool
    ) -> Iterator[Row | BadRow]:
        with opened(self.path) as file:
            number = 0
            while line := file.readline(self.longest + 1):
                number += 1
                shown = line[:SHOWN].decode("utf-8", "replace")
                if len(line) > self.longest:
                    size = len(line) + _skip_line(file, line)
                    yield BadRow(
                        number, "giant row", f"{size} bytes; at most {self.longest} are taken", shown
                    )
                    continue
                line = line.removeprefix(BOM) if number == 1 else line
                if not line.strip():
                    continue
                value = _parse(line, exact)
                if isinstance(value, dict):
                    yield Row(number, _chosen(self, number, value, columns, lists), self)
                else:
                    yield BadRow(number, *value, shown)


class Json(RowFile):
    """A `.json` file: a list of objects, an object of them by key, an object with one such list, or one row.

    Of rows by key (`{"p-1": {...}, "p-2": {...}}`) the key is the column `id`, where a row has none. JSON lines under
    this name are read as such.

    Args:
        path: of the file.
        longest: of JSON lines.
        within: see `open_rows`.
    """

    def __init__(self, path: Path, *, longest: int = LONGEST_ROW, within: str = "") -> None:
        super().__init__(path, longest=longest)
        self.within = within

    def _scan(
        self, columns: Sequence[str] | None, lists: Mapping[str, Reduction], *, exact: bool
    ) -> Iterator[Row | BadRow]:
        with opened(self.path) as file:
            content = file.read(LONGEST_JSON + 1)
        if len(content) > LONGEST_JSON:
            raise DataError(
                f"{self.path} has more than {LONGEST_JSON} bytes; write it as JSON lines, one object a line"
            )
        try:
            value = load_json(content.decode("utf-8-sig"), **(MARKED if exact else {}))
        except ValueError as error:
            if isinstance(error, json.JSONDecodeError) and _is_lines(content, error):
                lines = JsonLines(self.path, longest=self.longest)
                yield from lines.scan() if exact else lines.rows(columns, lists)
                return
            raise DataError(f"{self.path} cannot be read as JSON ({str(error)[:200]})") from error
        for number, row in enumerate(self._rows(value), start=1):
            if not isinstance(row, dict):
                yield BadRow(number, "not an object", f"a JSON {type(row).__name__}")
            elif exact and (fault := _fault(row)):
                yield BadRow(number, *fault)
            else:
                yield Row(number, _chosen(self, number, row, columns, lists), self)

    def _rows(self, value: Any) -> list[Any]:
        for key in self.within.split(".") if self.within.strip(".") else ():
            if not isinstance(value, dict) or key not in value:
                there = ", ".join(list(value)[:20]) if isinstance(value, dict) else "no keys"
                raise DataError(
                    f"{self.path} has no {self.within!r}; where {key!r} is looked for, there are {there}"
                )
            if isinstance(value, _Twice):
                return [value]  # a bad row, as the rows of one of the two would be lost
            value = value[key]
        if isinstance(value, list):
            return value
        if not isinstance(value, dict):
            raise DataError(f"{self.path} is a JSON {type(value).__name__}; it has to hold objects")
        if isinstance(value, _Twice) or self.within == ".":
            return [value]
        if value and all(isinstance(one, dict) for one in value.values()):
            return [_with_id(key, row) for key, row in value.items()]
        found = [key for key, one in value.items() if one and _is_rows(one)]
        if len(found) > 1 and all(isinstance(one, list) for one in value.values()):
            raise DataError(
                f"{self.path} has rows in several places: {', '.join(found[:20])}. Name one of them: in a source, "
                "the option `rows`"
            )
        return value[found[0]] if len(found) == 1 else [value]


class Csv(RowFile):
    """A `.csv` file with a first line of column names; every value is text.

    Cells are separated by commas, or, where the first line has none, by semicolons or tabs, as spreadsheets write them
    in languages with decimal commas.

    It is read twice: a quotation mark too many moves every cell behind it, so a file whose quotes are not balanced is
    refused before its first row is given out.
    """

    unit = "line"

    def _scan(
        self, columns: Sequence[str] | None, lists: Mapping[str, Reduction], *, exact: bool
    ) -> Iterator[Row | BadRow]:
        for _ in self._cells(exact):
            pass
        cells = self._cells(exact)
        names = [name.strip() for name in next(cells, (0, []))[1]]
        if not names or len(set(names)) < len(names) or any("\x00" in name for name in names):
            raise DataError(f"{self.path} has no first line of column names, each once; add one")
        for line, row in cells:
            if len(row) != len(names):
                if row:
                    text = f"{plural(len(row), 'cell')} under {plural(len(names), 'column')}"
                    yield BadRow(line, "too few or too many cells", text, ",".join(row))
                continue
            values = dict(zip(names, row, strict=True))
            yield Row(line, _chosen(self, line, values, columns, lists), self)

    def _cells(self, exact: bool) -> Iterator[tuple[int, list[str]]]:
        # never lowered again: another reader may be between two rows of its own
        csv.field_size_limit(max(csv.field_size_limit(), self.longest))
        with opened(self.path) as file:
            first = file.readline(self.longest + 1)
        separator = next((one for one in ",;\t" if one.encode() in first), ",")
        with opened(self.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
            reader = csv.reader(self._lines(text, exact), strict=True, delimiter=separator)
            try:
                for row in reader:
                    yield reader.line_num, row
            except csv.Error as error:
                raise DataError(
                    f"{self.path}, line {reader.line_num}: not CSV ({error}). Look for a quotation mark that is "
                    "missing or not doubled"
                ) from error

    def _lines(self, text: io.TextIOWrapper, exact: bool) -> Iterator[str]:
        number = 0
        while line := text.readline(self.longest + 1):
            number += 1
            if len(line) > self.longest:
                raise DataError(
                    f"{self.path}, line {number} has more than {self.longest} characters; take it out"
                )
            if not exact and not line.isascii() and ESCAPED.search(line):
                raise not_utf8(self.path, number)
            yield line


def _skip_line(file: BinaryIO, line: bytes) -> int:
    """Bytes up to the end of the line, which are thrown away."""
    size = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(1 << 20)
        size += len(line)
    return size


def _parse(line: bytes, exact: bool) -> dict[str, Any] | tuple[str, str]:
    """The object, or a reason and a detail."""
    try:
        value = load_json(line.decode("utf-8"), **(EXACT if exact else {}))
    except UnicodeDecodeError as error:
        return "not UTF-8", str(error)[:200]
    except _KeyTwice:
        return "key twice", "an object names one of its keys more than once"
    except ValueError as error:
        return "not JSON", str(error)[:200]
    if not isinstance(value, dict):
        return "not an object", f"the line is a JSON {type(value).__name__}"
    return value


def _is_lines(content: bytes, error: json.JSONDecodeError) -> bool:
    """Whether a second object follows the first: JSON lines under the name of JSON."""
    return error.msg == "Extra data" and content.removeprefix(BOM).lstrip()[:1] == b"{"


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _with_id(key: str, row: dict[str, Any]) -> dict[str, Any]:
    row.setdefault("id", key)
    return row


class _Twice(dict[str, Any]):
    """An object that names a key twice."""


class _NoNumber:
    """NaN or an infinity."""


def _fault(row: dict[str, Any]) -> tuple[str, str] | None:
    """Why a row of a .json file means nothing for sure; the rows beside it do."""
    left: list[Any] = [row]
    while left:
        value = left.pop()
        if isinstance(value, _Twice):
            return "key twice", "an object names one of its keys more than once"
        if isinstance(value, _NoNumber):
            return "not JSON", "NaN and Infinity are no JSON"
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
    return None


class _KeyTwice(ValueError):
    """An object that names a key twice may say two labels."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _KeyTwice
    return made


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Twice(made)


MARKED: dict[str, Any] = {"parse_constant": lambda _: _NoNumber(), "object_pairs_hook": _marked}
EXACT: dict[str, Any] = {"parse_constant": _no_number, "object_pairs_hook": _each_once}


def _chosen(
    file: RowFile,
    number: int,
    row: dict[str, Any],
    columns: Sequence[str] | None,
    lists: Mapping[str, Reduction],
) -> dict[str, Any]:
    if columns is None:
        return row
    values: dict[str, Any] = {}
    for name in columns:
        if name not in row:
            raise DataError(f"{file.unit} {number} of {file.path} has no {name!r}, which the first row has")
        value = row[name]
        if name in lists and value is not None:
            value = _reduce(value, lists[name])
            if value is None:
                what = (
                    "a list of 0 and 1" if lists[name] == "sum" else "a list of token ids, one response a row"
                )
                raise DataError(f"{file.unit} {number} of {file.path}: {name!r} is not {what}")
        values[name] = value
    return values


def _reduce(value: Any, how: Reduction) -> int | None:
    """The number of a list; None where it is no list of 0 and 1, or of token ids."""
    types = set(map(type, value)) if isinstance(value, list) else {None}
    if how == "count":
        return len(value) if types <= {int} else None
    return int(sum(value)) if types <= {int, bool, float} and {0, 1}.issuperset(value) else None
