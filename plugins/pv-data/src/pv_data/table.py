"""Parquet tables of `pv_data.records`: a table is a folder of parts, each written whole or not at all.

A part says in its metadata what it holds and by which version of the schema; a field that has a default may be missing
in a file of an earlier version, and a file of a later version is refused. A part has a checksum (`pv_data.checksums`),
which is verified before its first row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from pv_data.checksums import add_checksum, remedy, verify
from pv_data.records import Aside, AuditMark, Judgment, Label, Origin, Problem, Proof, Qpc, Row
from pv_judge.files import write_atomically
from pv_judge.rowfiles.files import check_regular
from pv_rl.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = [
    "KINDS",
    "VERSION",
    "PartWriter",
    "column",
    "groups",
    "parts",
    "read_group",
    "read_rows",
    "schema",
    "write_part",
]

VERSION = 1
"""Of all schemas together; 2 would be the first that reads files of 1 by a rule of its own."""
KINDS: Mapping[str, type[Row]] = {
    one.kind: one for one in (Problem, Proof, Judgment, Label, AuditMark, Qpc, Aside)
}
ROWS_AT_ONCE = 1024

AnyRow = TypeVar("AnyRow", bound=Row)


def parts(folder: str | Path) -> list[Path]:
    """The parts of a table, in order of their names; none for a folder that is not there."""
    return sorted(Path(folder).glob("*.parquet"))


def write_part(
    path: str | Path, kind: type[AnyRow], rows: Iterable[AnyRow], *, group: int = ROWS_AT_ONCE
) -> int:
    """Write rows to one file, whole or not at all; returns how many. The column `id` comes first.

    Args:
        group: rows of a row group, which `read_group` reads by itself.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = list(rows)
    table = pa.Table.from_pylist([{"id": row.id, **_flat(row)} for row in rows], schema=schema(kind))
    options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True, "row_group_size": group}

    def write(temporary: Path) -> None:
        pq.write_table(table, temporary, **options)
        add_checksum(temporary)

    write_atomically(path, write)
    return len(rows)


class PartWriter(Generic[AnyRow]):
    """Writes rows as parts of so many rows each, of which one is in memory."""

    def __init__(
        self, kind: type[AnyRow], path: Callable[[int], Path], *, rows: int, group: int = ROWS_AT_ONCE
    ) -> None:
        """
        Args:
            kind: of the rows.
            path: the file of part 0, 1, ...
            rows: of a part.
            group: see `write_part`.
        """
        self._kind, self._path, self._size, self._group = kind, path, rows, group
        self._waiting, self._written = list[AnyRow](), 0

    def add(self, row: AnyRow) -> None:
        """Write a row, at the latest with `close`."""
        self._waiting.append(row)
        if len(self._waiting) == self._size:
            self.close()

    def close(self) -> None:
        """Write the rows that are left."""
        if self._waiting:
            write_part(self._path(self._written), self._kind, self._waiting, group=self._group)
            self._waiting, self._written = [], self._written + 1


def read_rows(source: str | Path | Sequence[Path], kind: type[AnyRow]) -> Iterator[AnyRow]:
    """The rows of a table (a folder; none if it is not there), of one part or of several, in order, a few at a time.

    Raises:
        DataError: a file that is no Parquet, holds something else, or is of a later version.
    """
    files = [Path(source)] if isinstance(source, str | Path) else list(source)
    files = [part for file in files for part in ([file] if file.suffix == ".parquet" else parts(file))]
    for path in files:
        with _opened(path, kind) as (file, columns):
            left = file.metadata.num_rows
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns, use_threads=False):
                left -= batch.num_rows
                yield from (_row(kind, values, path) for values in batch.to_pylist())
            if left:  # a damaged page can end a file early
                raise OSError(f"{left} of its rows are missing")


def column(table: Path, name: str) -> Iterator[Any]:
    """The values of one column of a table, in order; a `DataError` as `read_rows` raises it."""
    for path in parts(table):
        with _opened(path, None) as (file, _):
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[name], use_threads=False):
                yield from batch.column(0).to_pylist()


def groups(path: Path, kind: type[Row]) -> int:
    """How many row groups a part has; a `DataError` as `read_rows` raises it."""
    with _opened(path, kind) as (file, _):
        return file.num_row_groups


def read_group(path: Path, kind: type[AnyRow], index: int) -> list[AnyRow]:
    """The rows of one row group; a `DataError` as `read_rows` raises it."""
    with _opened(path, kind) as (file, columns):
        read = file.read_row_group(index, columns=columns, use_threads=False)
        return [_row(kind, values, path) for values in read.to_pylist()]


@contextmanager
def _opened(path: Path, kind: type[Row] | None) -> Iterator[tuple[pq.ParquetFile, list[str]]]:
    """A part, and those of the kind's columns that it has; of any kind if none is given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_regular(path)
    try:
        verify(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if kind is None:
                yield file, file.schema_arrow.names
            else:
                _check(path, kind, file.schema_arrow)
                names = file.schema_arrow.names
                yield file, [field.name for field in schema(kind) if field.name in names]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = f"a table of {kind.kind} rows" if kind else "a table"
        raise DataError(
            f"{path} cannot be read as {what} ({type(error).__name__}: {error}). {remedy(path)}"
        ) from error


@cache
def schema(kind: type[Row]) -> pa.Schema:
    """Columns of a kind: its id, its fields, and those of `Origin` as `origin_...`."""
    import pyarrow as pa

    columns = [pa.field("id", pa.string(), nullable=False), *_columns(kind)]
    return pa.schema(columns, metadata={"pv_data.kind": kind.kind, "pv_data.version": str(VERSION)})


def _columns(kind: type, prefix: str = "") -> Iterator[pa.Field]:
    import pyarrow as pa

    plain = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    hints = _hints(kind)
    for field in fields(kind):
        hint = hints[field.name]
        if hint is Origin:
            yield from _columns(Origin, f"{field.name}_")
        elif get_origin(hint) is tuple:
            yield pa.field(prefix + field.name, pa.list_(plain[get_args(hint)[0]]), nullable=False)
        elif hint in plain:
            yield pa.field(prefix + field.name, plain[hint], nullable=False)
        else:
            (one,) = (arg for arg in get_args(hint) if arg is not type(None))
            yield pa.field(prefix + field.name, plain[one], nullable=True)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _flat(row: Any, prefix: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if isinstance(value, Origin):
            values |= _flat(value, f"{field.name}_")
        else:
            values[prefix + field.name] = _storable(value)
    return values


def _storable(value: Any) -> Any:
    """Parquet takes no halves of surrogate pairs, which JSON may hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _row(kind: type[AnyRow], values: dict[str, Any], path: Path) -> AnyRow:
    made: dict[str, Any] = {}
    hints = _hints(kind)
    for field in fields(kind):
        hint = hints[field.name]
        if hint is Origin:
            inner = {one.name: f"{field.name}_{one.name}" for one in fields(Origin)}
            made[field.name] = Origin(**{name: values[key] for name, key in inner.items() if key in values})
        elif field.name in values:
            value = values[field.name]
            made[field.name] = tuple(value) if get_origin(hint) is tuple else value
        elif field.default is MISSING:
            raise DataError(f"{path} has no column {field.name!r}, which a {kind.kind} needs")
    row = kind(**made)
    if row.id != values.get("id"):
        raise DataError(
            f"{path}: the {kind.kind} {values.get('id')} has been changed since it was written (its content says "
            f"{row.id}); make changes in the source and run again"
        )
    return row


def _check(path: Path, kind: type[Row], found: pa.Schema) -> None:
    metadata = found.metadata or {}
    given = metadata.get(b"pv_data.kind", b"?").decode("utf-8", "replace")
    version = metadata.get(b"pv_data.version", b"?").decode("utf-8", "replace")
    if given != kind.kind:
        raise DataError(f"{path} holds rows of kind {given!r}, and {kind.kind!r} was expected")
    if not version.isdigit() or int(version) > VERSION:
        raise DataError(
            f"{path} is of version {version}, and this pv-data knows up to {VERSION}; install the newer pv-data"
        )
