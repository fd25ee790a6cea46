"""Writer and reader of the ledger: rows go to a journal, and from there into Parquet files."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pv_judge.ledger.journal import Journal, fold, fold_dead, part_of, tables
from pv_judge.ledger.row import ADDED, METADATA_KEY, VERSION, LedgerRow, need_pyarrow, schema
from pv_judge.rowfiles.files import check_regular
from pv_rl.errors import DataError, PvRlError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ledger", "LedgerUnavailable", "read_ledger"]

logger = logging.getLogger(__name__)


class LedgerUnavailable(PvRlError, OSError):
    """The ledger cannot be written now, for example because the disk is full. Rows that were appended are kept."""


class Ledger:
    """Writes rows to the ledger in `folder`, which is made if it is missing.

    Any number of processes can write to one folder, each with a `Ledger` of its own; all threads of a process can share
    one. It first turns journals of dead writers into Parquet files.

    Raises:
        SetupError: pyarrow is missing.
        LedgerUnavailable: (an OSError) the folder cannot be written or locked.
    """

    def __init__(self, folder: str | Path, *, rows: int = 5000, megabytes: float = 64) -> None:
        """A journal becomes a Parquet file when it has `rows` rows or `megabytes` MB of JSON."""
        need_pyarrow()
        self.folder = Path(folder).expanduser()
        self._rows = rows
        self._bytes = megabytes * 1e6
        self._lock = threading.Lock()
        self._closed = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            fold_dead(self.folder)
            self._journal: Journal | None = self._begin()
        except OSError as error:
            raise self._unavailable(error) from error

    def append(self, row: LedgerRow) -> str:
        """Add a row and return its id. When this returns, the row outlives a `kill -9` of the process.

        It takes well under a millisecond, except for the call that fills a journal and makes a Parquet file of it.

        Raises:
            LedgerUnavailable: the row could not be written and is not in the ledger.
        """
        with self._lock:
            if self._closed:
                raise LedgerUnavailable(f"the ledger {self.folder} is closed. Open it again to append")
            try:
                self._journal = self._journal or self._begin()
                row_id = self._journal.append(row)
            except OSError as error:
                raise self._unavailable(error) from error
            if self._journal.rows >= self._due_rows or self._journal.size >= self._due_bytes:
                self._rotate(self._journal)
            return row_id

    def close(self) -> None:
        """Turn the journal into a Parquet file. Without this, readers find its rows in the journal."""
        with self._lock:
            self._closed = True
            journal, self._journal = self._journal, None
            if journal is not None and not self._fold(journal):
                journal.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self) -> Journal:
        self._due_rows, self._due_bytes = self._rows, self._bytes
        return Journal(self.folder)

    def _rotate(self, journal: Journal) -> None:
        if self._fold(journal):
            self._journal = None
        else:  # the rows are in the journal: append to it, and try again later
            self._due_rows, self._due_bytes = journal.rows + self._rows, journal.size + self._bytes

    def _fold(self, journal: Journal) -> bool:
        """Whether the journal was folded and closed; else it is unchanged."""
        try:
            fold(journal.path)
        except (OSError, DataError) as error:
            logger.warning("%s could not be turned into Parquet and stays: %s", journal.path, error)
            if not part_of(journal.path).exists():
                return False
        journal.close()
        return True

    def _unavailable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"the judge's ledger {self.folder} cannot be written ({error}). It needs free disk space, a writable "
            "folder and a file system with locks. Free disk space, or name another folder in the option ledger"
        )


def read_ledger(path: str | Path) -> pa.Table:
    """Every row of a ledger once, in the order of the files' names, also while it is being written.

    `path` is the folder, or one Parquet file with the ledger's columns; other columns come last.

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
        check_regular(journal)
        try:
            journals[part_of(journal)] = list(tables(journal))
        except FileNotFoundError:
            continue
    parts = {part: [_read_part(part)] for part in path.glob("part-*.parquet")}
    if not journals and not parts:
        raise DataError(
            f"{path} contains no ledger. Give the folder of the option ledger, or a Parquet file of it"
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
    check_regular(path)
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
            f"{path} has ledger version {version}, and this pv-rl reads up to {VERSION}. Install the newer pv-rl"
        )
    if missing:
        raise DataError(f"{path} is not a file of a ledger: it has no column {', '.join(missing)}")
    return table
