"""Rows of a plain file: JSON lines, CSV or Parquet, one after another, each with the words for where it stands."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pv_rl.errors import DataError
from pv_rl.extras import needs

__all__ = ["SUFFIXES", "read_rows"]

SUFFIXES = (".jsonl", ".csv", ".parquet")
LONGEST = 20_000_000
"""Characters of a line or of a cell; what is longer is no proof but a mistake."""
ROWS_AT_ONCE = 256


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row as a mapping from column to value.

    Raises:
        DataError: the file is missing or of another kind, or a row cannot be read. The text says where.
    """
    readers = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}
    if not path.is_file() or path.suffix not in readers:
        what = (
            "is not there" if not path.exists() else "is a folder" if path.is_dir() else "is of another kind"
        )
        raise DataError(f"{path} {what}; give a file that ends in {', '.join(SUFFIXES)}")
    try:
        yield from readers[path.suffix](path)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read ({error}); it has to be UTF-8 text, or Parquet") from error


def _jsonl(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig") as file:
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise DataError(
                    f"line {number} of {path} has more than {LONGEST} characters; cut the file up"
                )
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"line {number} of {path} is not JSON ({error}); mend it or take it out"
                ) from error
            if not isinstance(row, dict):
                raise DataError(f"line {number} of {path} is a JSON {type(row).__name__}, and no object")
            yield f"line {number} of {path.name}", row


def _csv(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    before = csv.field_size_limit(LONGEST)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names = reader.fieldnames or []
            if len(set(names)) < len(names) or not names:
                raise DataError(f"{path} has no first line of column names, each once; give it one")
            for number, row in enumerate(reader, start=1):
                if None in row or None in row.values():
                    raise DataError(f"row {number} of {path} has more or fewer cells than there are columns")
                yield f"row {number} of {path.name}", row
    except csv.Error as error:
        raise DataError(f"{path} is no CSV that can be read ({error}); are its quotes balanced?") from error
    finally:
        csv.field_size_limit(before)


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with needs("pyarrow", "a .parquet file", "pip install pyarrow, or give a .jsonl file"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        number = 0
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number} of {path.name}", row
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet ({error}); was it written to its end?") from error
