"""Some columns of a table, where whole rows would be texts that nobody needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pv_data.records import Row
from pv_data.table import groups, parts
from pv_rl.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_columns"]

ROWS_AT_ONCE = 16_384


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
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=list(columns)):
                yield pa.Table.from_batches([batch])
