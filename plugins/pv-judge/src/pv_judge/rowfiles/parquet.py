"""Parquet. Only the columns that are asked for are read, and lists never become Python objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_judge.rowfiles.columns import Kind, Reduction
from pv_rl.errors import DataError
from pv_rl.extras import needs

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Parquet"]

BATCH = 2048


class Parquet:
    """A `.parquet` file.

    Raises:
        SetupError: pyarrow is missing.
        DataError: the file is empty or cannot be read, or a list is not what it should be.
    """

    row = "row"

    def __init__(self, path: Path) -> None:
        with needs("pyarrow", "a .parquet file", "pip install pyarrow, or give a .jsonl file"):
            import pyarrow.parquet as pq
        self.path = path
        with self._readable():
            self._file = pq.ParquetFile(path)
            self._schema = self._file.schema_arrow
        if self._file.metadata.num_rows == 0:
            raise DataError(f"{path} is empty; give a file with at least one response")
        self.kinds: dict[str, Kind] = {field.name: _kind(field.type) for field in self._schema}

    def batches(
        self, names: Sequence[str], lists: Mapping[str, Reduction]
    ) -> Iterator[tuple[list[int], dict[str, list[Any]]]]:
        """Row numbers from 1, and the values of the columns `names`; a list in `lists` as its sum or its count."""
        number = 1
        with self._readable():
            for batch in self._file.iter_batches(batch_size=BATCH, columns=list(names)):
                values = {
                    name: self._reduce(batch.column(name), lists[name], name, number)
                    if name in lists
                    else batch.column(name).to_pylist()
                    for name in names
                }
                yield list(range(number, number + batch.num_rows)), values
                number += batch.num_rows

    @contextmanager
    def _readable(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{self.path} cannot be read as parquet ({reason}). Was it written to its end?"
            ) from error

    def _reduce(self, array: pa.Array, how: Reduction, name: str, first: int) -> list[int | None]:
        """(rows,) the sum or the count of each row's list; None for a null."""
        import pyarrow as pa
        import pyarrow.compute as pc

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
