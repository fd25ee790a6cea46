"""Read a ledger: all its parts, and the journals that are not parts yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pv_judge.ledger.parts import part_of, tables
from pv_judge.ledger.schema import ADDED, METADATA_KEY, VERSION, need_pyarrow, schema
from pv_rl.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_ledger"]


def read_ledger(path: str | Path) -> pa.Table:
    """Every row of a ledger once, in the order of the files' names, also while it is being written.

    `path` is the folder, or one Parquet file with the ledger's columns; columns that are not ours come last.

    Raises:
        SetupError: pyarrow is missing.
        DataError: there is no ledger, or one that cannot be read.
    """
    need_pyarrow()
    import pyarrow as pa

    path = Path(path).expanduser()
    if path.is_file():
        return _read_part(path)
    journals: dict[Path, list[pa.Table]] = {}
    # Journals first: one that becomes a part meanwhile is then found as a part, and not as both.
    for journal in sorted(path.glob("journal-*.jsonl")):
        try:
            journals[part_of(journal)] = list(tables(journal))
        except FileNotFoundError:
            continue
    parts = {part: [_read_part(part)] for part in path.glob("part-*.parquet")}
    if not journals and not parts:
        raise DataError(
            f"there is no ledger in {path}: give the folder that the option ledger named, or a file of it"
        )
    found = {**journals, **parts}
    return pa.concat_tables(
        [schema().empty_table(), *(table for name in sorted(found) for table in found[name])],
        promote_options="default",
    )


def _read_part(path: Path) -> pa.Table:
    """The file's rows in our columns, then columns that it has beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = schema()
    try:
        table = pq.ParquetFile(path).read()
        version = int((table.schema.metadata or {}).get(METADATA_KEY, VERSION))
        for name in sorted(ADDED - set(table.column_names)):
            table = table.append_column(name, pa.nulls(len(table), columns.field(name).type))
        missing = [name for name in columns.names if name not in table.column_names]
        if version <= VERSION and not missing:
            others = [field for field in table.schema if field.name not in columns.names]
            arrays = [table.column(field.name).cast(field.type) for field in columns]
            arrays += [table.column(field.name) for field in others]
            table = pa.table(arrays, pa.schema([*columns, *others], columns.metadata))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a part of a ledger: {error}") from error
    if version > VERSION:
        raise DataError(
            f"{path} is of version {version}, and this pv-rl knows up to {VERSION}: install the newer pv-rl"
        )
    if missing:
        raise DataError(f"{path} is not of a ledger: it has no {', '.join(missing)}")
    return table
