"""Rows of a Parquet file, some at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_data.records import Aside
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.files import check_regular
from pv_data.sources.reading.unusable import aside
from pv_rl.errors import DataError
from pv_rl.extras import needs

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_parquet"]

ROWS_AT_ONCE = 64


def read_parquet(path: Path) -> Iterator[Fields | Aside]:
    """Each row as fields.

    Raises:
        DataError: it is no Parquet, or damaged, or names a column twice.
    """
    with needs("pyarrow", "a .parquet file", "pip install pyarrow, or give a .jsonl file"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    check_regular(path)
    number = 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise DataError(f"{path} names a column twice; write it again")
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                for index in range(batch.num_rows):
                    number += 1
                    yield _row(batch, index, f"{path.name}:{number}")
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet ({error}); was it written to its end?") from error


def _row(batch: pa.RecordBatch, index: int, where: str) -> Fields | Aside:
    values: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            value = column[index].as_py()
            # what pandas writes where a column of numbers has a gap
            values[name] = None if isinstance(value, float) and math.isnan(value) else value
        except UnicodeDecodeError:
            return aside(where, "not UTF-8", f"column {name}")
        except (ValueError, OverflowError) as error:  # a time that Python has no date for
            return aside(where, "not readable", f"column {name}: {error}")
    return Fields(where=where, values=values)
