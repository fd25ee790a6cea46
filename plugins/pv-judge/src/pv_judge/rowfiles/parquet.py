"""Parquet row file, read by pyarrow: only the columns that are asked for, some rows at a time.

Lists that become one number never become Python objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from pv_judge.extras import needs
from pv_judge.rowfiles.files import check_regular
from pv_judge.rowfiles.rows import BadRow, Kind, Reduction, Row, RowFile
from pv_rl.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["Parquet"]

ROWS_AT_ONCE = 256


class Parquet(RowFile):
    """A `.parquet` file. A NaN, which pandas writes into a column of numbers for a gap, is None in `scan`."""

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The columns and what they hold, by the schema."""
        with self._opened() as file:
            if file.metadata.num_rows == 0:
                raise self._empty()
            return {column.name: _kind(column.type) for column in file.schema_arrow}

    def _scan(
        self, columns: Sequence[str] | None, lists: Mapping[str, Reduction], *, exact: bool
    ) -> Iterator[Row | BadRow]:
        number = 1
        with self._opened() as file:
            there = file.schema_arrow.names
            names = list(columns) if columns is not None else there
            if lost := [name for name in names if name not in there]:
                raise DataError(f"{self.path} has no column {lost[0]!r}; it has {', '.join(there)}")
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=names):
                values = [
                    self._reduce(batch.column(name), lists[name], name, number)
                    if name in lists
                    else _values(batch.column(name))
                    for name in names
                ]
                for index in range(batch.num_rows):
                    yield self._row(number, index, names, values, exact)
                    number += 1
            if number - 1 != file.metadata.num_rows:
                said = f"its footer counts {file.metadata.num_rows} rows, and it holds {number - 1}"
                raise DataError(f"{self.path} is damaged: {said}. Get it again")

    def _row(
        self, number: int, index: int, names: Sequence[str], columns: list[Any], exact: bool
    ) -> Row | BadRow:
        values: dict[str, Any] = {}
        for name, column in zip(names, columns, strict=True):
            value = column[index]
            if not isinstance(column, list):
                try:
                    value = value.as_py()
                except UnicodeDecodeError:
                    return BadRow(number, "not UTF-8", f"column {name}")
                except (ValueError, OverflowError) as error:
                    return BadRow(number, "not readable", f"column {name}: {error}")
            values[name] = None if exact and isinstance(value, float) and math.isnan(value) else value
        return Row(number, values, self)

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        with needs("pyarrow", "a .parquet file", "pip install pyarrow, or give a .jsonl file"):
            import pyarrow as pa
            import pyarrow.parquet as pq
        check_regular(self.path)
        try:
            with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                names = file.schema_arrow.names
                if len(set(names)) < len(names):
                    raise DataError(f"{self.path} names a column twice; write it again")
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the latter: a column's name
            reason = " ".join(str(error).split())
            raise DataError(
                f"{self.path} cannot be read as Parquet ({reason}). It may not have been written to its end"
            ) from error

    def _reduce(self, array: pa.Array, how: Reduction, name: str, first: int) -> list[int | None]:
        """(rows,) the sum or the count of each row's list; None for a null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if _kind(array.type) != "list":
            what = "0 and 1" if how == "sum" else "token ids, one response a row"
            raise DataError(f"{self.path}: {name!r} holds {array.type}, not lists of {what}")
        item = array.type.value_type
        if how == "count":
            no_items = pa.types.is_null(item) and len(array.flatten()) == 0
            if not pa.types.is_integer(item) and not no_items:
                raise DataError(
                    f"{self.path}: {name!r} holds lists of {item}, not of token ids. One response a row is needed"
                )
            return array.value_lengths().to_pylist()
        values = array.flatten()
        fit = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
        if not any(test(item) for test in fit):
            raise DataError(f"{self.path}: {name!r} holds lists of {item}, not of 0 and 1")
        values = values.cast(pa.float64())
        if not {0.0, 1.0}.issuperset(values.unique().to_pylist()):
            raise DataError(
                f"rows {first} to {first + len(array) - 1} of {self.path}: {name!r} is not a list of 0 and 1 "
                "everywhere"
            )
        counts = array.value_lengths().to_pylist()
        ends = list(accumulate(count or 0 for count in counts))
        running = pc.call_function("cumulative_sum", [values])  # much faster than to group by row
        last = running.take(pa.array([end - 1 for end in ends if end], pa.int64())).to_pylist()
        totals = [0] * (len(ends) - len(last)) + [int(total) for total in last]
        sums = [after - before for before, after in pairwise([0, *totals])]
        return [None if count is None else total for count, total in zip(counts, sums, strict=True)]


def _values(column: pa.Array) -> list[Any] | pa.Array:
    """(rows,) Python values; the array itself where one has none: bytes that are not UTF-8, a time without a date."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return column


def _kind(of: pa.DataType) -> Kind:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(of):
        of = of.value_type
    if types.is_null(of):
        return "empty"
    if types.is_boolean(of):
        return "flag"
    if types.is_integer(of) or types.is_floating(of):
        return "number"
    if str(of) in ("string", "large_string", "string_view"):
        return "text"
    if types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of):
        return "list"
    return "other"
