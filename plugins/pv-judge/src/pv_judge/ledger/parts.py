"""From journals to Parquet files: `part-X.parquet` holds all rows of `journal-X.jsonl`.

Where both are there, the part counts. That makes the step safe at every point: a part comes whole or not at all, and
only then its journal goes.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pv_judge.ledger.journal import read_journal
from pv_judge.ledger.schema import schema
from pv_rl.errors import DataError
from pv_rl.files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["fold", "fold_dead", "part_of", "tables"]

logger = logging.getLogger("pv_judge.ledger")
ROWS = 500
"""Rows in memory at a time, and of a row group."""


def part_of(journal: Path) -> Path:
    """The Parquet file that a journal becomes."""
    return journal.with_name(f"part-{journal.stem.removeprefix('journal-')}.parquet")


def tables(journal: Path, damaged: list[int] | None = None) -> Iterator[pa.Table]:
    """The rows of a journal, up to `ROWS` at a time. Errors as of `read_journal`."""
    import pyarrow as pa

    rows = read_journal(journal, damaged)
    while some := list(islice(rows, ROWS)):
        values = [{"row_id": row_id, **row.to_json(), "time": row.time} for row_id, row in some]
        yield pa.Table.from_pylist(values, schema())


def fold(journal: Path) -> None:
    """Turn a journal into its part. The caller holds its lock, and nobody adds to it any more.

    A journal with a damaged line is kept, as `damaged-X.jsonl`, beside the part with all its other rows.

    Raises:
        OSError: the part could not be written; the journal is as it was.
        DataError: it cannot be read or does not fit into Parquet; likewise.
    """
    part = part_of(journal)
    damaged: list[int] = []
    if not part.exists():
        for left in journal.parent.glob(f".{part.name}.*.part"):  # of a writer that was killed here
            left.unlink(missing_ok=True)
        _write(part, tables(journal, damaged))
    if damaged:
        journal.rename(journal.with_name(f"damaged-{journal.name.removeprefix('journal-')}"))
    else:
        journal.unlink(missing_ok=True)


def fold_dead(folder: Path) -> None:
    """Turn the journals of writers that are gone into parts; what cannot be is left, with a warning."""
    for journal in sorted(folder.glob("journal-*.jsonl")):
        try:
            fd = os.open(journal, os.O_RDWR)
        except FileNotFoundError:  # another process was quicker
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if journal.exists():  # another may have folded it between open and lock
                fold(journal)
        except BlockingIOError:
            pass  # its writer lives
        except (OSError, DataError) as error:
            logger.warning("%s stays a journal: %s", journal, error)
        finally:
            os.close(fd)


def _write(part: Path, rows: Iterator[pa.Table]) -> None:
    """Write and sync a part; none where there is no row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(rows, None)
    if first is None:
        return

    def write(file: Path) -> None:
        with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
            writer.write_table(first)
            for table in rows:
                writer.write_table(table)
        _sync(file)

    try:
        write_atomically(part, write)
    except pa.ArrowException as error:
        raise DataError(f"{part} cannot be written: {error}") from error
    _sync(part.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
