"""A run on disk: a folder with `pairs.parquet`, `votes.parquet` and `run.json`, one verifier on one set.

pairs.parquet   pair_id, question_id, slice, question, proof (text), label (bool, null: unknown), weight (double)
votes.parquet   pair_id, question_id (text), sample (int64), verdict (bool, null: missing), length (double, null),
                trace (text, null: not kept), logit (double, null)
run.json        the fields of `RunInfo`

Each carries the version of this format: tables as the metadata `pv_eval`, run.json as `format`. A table may
lack columns that have a default, and have others, which are ignored; a file of a later version is refused.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pv_eval.run_info import FORMAT, RunInfo, info_as_json, read_info
from pv_eval.votes import Pair, Vote
from pv_rl.errors import DataError
from pv_rl.extras import needs
from pv_rl.files import write_together

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_run", "write_run"]

KEY = "pv_data.evaluate"
PAIRS, VOTES, RUN = "pairs.parquet", "votes.parquet", "run.json"
TYPES = {
    "pair_id": "string",
    "question_id": "string",
    "slice": "string",
    "question": "string",
    "proof": "string",
    "label": "bool",
    "weight": "double",
    "sample": "int64",
    "verdict": "bool",
    "length": "double",
    "trace": "string",
    "logit": "double",
}

Row = TypeVar("Row", Pair, Vote)


def write_run(folder: Path, pairs: Iterable[Pair], votes: Iterable[Vote], info: RunInfo) -> None:
    """Write the three files, all or none. The folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    write_together(
        {
            folder / PAIRS: _to_parquet(Pair, pairs),
            folder / VOTES: _to_parquet(Vote, votes),
            folder / RUN: info_as_json(info),
        }
    )


def read_run(folder: Path) -> tuple[list[Pair], list[Vote], RunInfo]:
    """Read them; nothing is checked across rows, see `check`.

    Raises:
        DataError: a file that is missing, no such file, of a later version, or has a value that cannot be.
        SetupError: pyarrow is missing.
    """
    lacking = [name for name in (PAIRS, VOTES, RUN) if not (folder / name).is_file()]
    if lacking:
        raise DataError(
            f"{folder} has no {' and no '.join(lacking)}; a run is a folder with {PAIRS}, {VOTES}, {RUN}"
        )
    return _from_parquet(Pair, folder / PAIRS), _from_parquet(Vote, folder / VOTES), read_info(folder / RUN)


def _to_parquet(kind: type[Row], rows: Iterable[Row]) -> bytes:
    with needs("pyarrow", "a run on disk", "pip install pyarrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    listed = list(rows)
    columns = {
        one.name: pa.array(
            [_clean(getattr(row, one.name)) for row in listed], type=pa.type_for_alias(TYPES[one.name])
        )
        for one in fields(kind)
    }
    file = io.BytesIO()
    table = pa.table(columns).replace_schema_metadata({KEY: f"{kind.__name__.lower()} {FORMAT}"})
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _clean(value: Any) -> Any:
    """Halves of surrogate pairs cannot be stored."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _from_parquet(kind: type[Row], path: Path) -> list[Row]:
    with needs("pyarrow", "a run on disk", "pip install pyarrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    said = ((table.schema.metadata or {}).get(KEY.encode()) or b"").decode("utf-8", "replace")
    word, _, version = said.partition(" ")
    if word != kind.__name__.lower() or not version.isdecimal() or int(version) > FORMAT:
        raise DataError(
            f"{path} says it is {said or 'nothing'!r:.60}; read is '{kind.__name__.lower()} 1' to {FORMAT} "
            f"(metadata {KEY}). Write it with pv_eval.write_run, or take a newer pv-data"
        )
    columns = {
        one.name: _column(table, one.name, path) for one in fields(kind) if one.name in table.column_names
    }
    required = [one.name for one in fields(kind) if one.default is MISSING and one.name not in columns]
    if required:
        raise DataError(f"{path} lacks the columns {', '.join(required)}")
    names = list(columns)
    return [
        _row(kind, names, values, path, n) for n, values in enumerate(zip(*columns.values(), strict=True))
    ]


def _column(table: pa.Table, name: str, path: Path) -> list[Any]:
    import pyarrow as pa

    column, wanted = table.column(name), pa.type_for_alias(TYPES[name])
    if pa.types.is_string(wanted) and not (
        pa.types.is_string(column.type)
        or pa.types.is_large_string(column.type)
        or pa.types.is_null(column.type)
    ):
        raise DataError(f"{path}: the column {name} is {column.type}, and has to be {wanted}")
    try:
        # a 1 becomes no True, and 0.5 no whole number
        if pa.types.is_boolean(wanted) and not (
            pa.types.is_boolean(column.type) or pa.types.is_null(column.type)
        ):
            raise DataError(f"{path}: the column {name} is {column.type}, and has to be {wanted}")
        return column.cast(wanted).to_pylist()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: the column {name} is {column.type}, and has to be {wanted}: {error}"
        ) from error


def _row(kind: type[Row], names: list[str], values: tuple[Any, ...], path: Path, number: int) -> Row:
    try:
        return kind(**dict(zip(names, values, strict=True)))
    except DataError as error:
        raise DataError(f"{path}, row {number}: {error}") from error
