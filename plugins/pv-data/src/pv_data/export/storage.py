"""Export storage: folders that are replaced as a whole, streamed Parquet files, and single columns of a table."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pv_data.records import Row
from pv_data.table import groups, parts
from pv_rl.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ParquetStream", "read_columns", "whole_folder"]


MARK = ".pv_data_export"
"""A file that says that we made the folder, and may replace it."""


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `path` at the end; on an error `path` stays as it was.

    What processes that were killed left half made is cleared away.

    Two renames, since no file system exchanges folders by one: a machine that dies between them leaves the old folder
    beside it as `.NAME.PID.old`.

    Raises:
        ConfigError: there is something that pv-data did not make.
    """
    path = path.resolve()
    if path.exists() and not (path / MARK).exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ConfigError(
            f"{path} exists and pv-data did not make it. Choose a new folder, or move this one away"
        )
    new, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("part", "old"))
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        (new / MARK).write_text("made by pv-data: exporting again replaces this folder\n", encoding="utf-8")
        if path.exists():
            path.rename(old)
        try:
            new.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
        for left in (old, *_leftovers(path)):
            shutil.rmtree(left, ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _leftovers(path: Path) -> list[Path]:
    """What processes that were killed left beside `path`."""
    found = [one for end in ("part", "old") for one in path.parent.glob(f".{glob.escape(path.name)}.*.{end}")]
    return [
        one for one in found if one.name.split(".")[-2].isdigit() and not _runs(int(one.name.split(".")[-2]))
    ]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True


ROWS_AT_ONCE = 1024


class ParquetStream:
    """One file that is being written. The caller sees to it that it takes its place only when it is whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self.path, self.rows, self.bytes = path, 0, 0
        self._schema, self._buffer = schema, list[dict[str, Any]]()
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True)

    def add(self, row: dict[str, Any]) -> None:
        """Write one row, sooner or later."""
        self._buffer.append(_storable(row))
        self.rows += 1
        if len(self._buffer) >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        table = pa.Table.from_pylist(self._buffer, schema=self._schema)
        self.bytes += table.nbytes
        self._writer.write_table(table)
        self._buffer.clear()

    def __enter__(self) -> ParquetStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._buffer:
            self._flush()
        self._writer.close()


def _storable(value: Any) -> Any:
    """Parquet takes no halves of surrogate pairs, which JSON may hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _storable(one) for key, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list | tuple) else value


COLUMN_ROWS_AT_ONCE = 16_384


def read_columns(tables: Iterable[Path], kind: type[Row], columns: Sequence[str]) -> Iterator[pa.Table]:
    """These columns, some rows at a time.

    Raises:
        DataError: a file that is no table of this kind, or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in (part for table in tables for part in (parts(table) if table.is_dir() else [table])):
        groups(path, kind)  # refuses what is no table of this kind
        with pq.ParquetFile(path) as file:
            if missing := sorted(set(columns) - set(file.schema_arrow.names)):
                raise DataError(f"{path} has no column {', '.join(missing)}, which a {kind.kind} has")
            for batch in file.iter_batches(batch_size=COLUMN_ROWS_AT_ONCE, columns=list(columns)):
                yield pa.Table.from_batches([batch])
