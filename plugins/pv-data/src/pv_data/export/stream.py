"""Parquet written as rows come, without holding them all."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ParquetStream"]

ROWS_AT_ONCE = 1024


class ParquetStream:
    """One file that is being written. The caller sees to it that it takes its place only when it is whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self.path, self.rows, self.bytes = path, 0, 0
        self._schema, self._buffer = schema, list[dict[str, Any]]()
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

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
