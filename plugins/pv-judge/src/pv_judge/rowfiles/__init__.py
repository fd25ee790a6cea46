"""Row files: JSON lines, JSON, CSV and Parquet, read one row at a time, each row with its place.

    for row in open_rows(Path("rollouts.jsonl")).rows(["uid", "score"]):
        if row.values["score"] is None:
            raise DataError(f"{row.where} has no score")

JSON and CSV are read by Python's own parsers: a table engine (pyarrow, polars, duckdb) guesses one type a column, and
loses the line of a row. Parquet is read by pyarrow.
"""

from collections.abc import Sequence
from pathlib import Path

from pv_judge.rowfiles.files import suffix_of
from pv_judge.rowfiles.parquet import Parquet
from pv_judge.rowfiles.rows import LONGEST_ROW, BadRow, Kind, Reduction, Row, RowFile
from pv_judge.rowfiles.text import Csv, Json, JsonLines
from pv_rl.errors import DataError

__all__ = ["LONGEST_ROW", "SUFFIXES", "BadRow", "Kind", "Reduction", "Row", "RowFile", "open_rows"]

READERS: dict[str, type[RowFile]] = {".jsonl": JsonLines, ".json": Json, ".csv": Csv, ".parquet": Parquet}
SUFFIXES = tuple(READERS)
"""What files end in; `.gz` may follow for all but Parquet."""


def open_rows(
    path: Path, *, suffixes: Sequence[str] = SUFFIXES, longest: int = LONGEST_ROW, within: str = ""
) -> RowFile:
    """The reader of a file, by what its name ends in.

    Args:
        path: the file.
        suffixes: the kinds that are allowed here.
        longest: bytes of the longest JSON line, characters of the longest CSV line.
        within: of a .json file, the keys under which the rows are, `data.train`, or `.` for a file that is one row.
            They are looked for if not given.

    Raises:
        DataError: it is missing, a folder, or of another kind, or `within` is given for a file without keys.
    """
    suffix = suffix_of(path)
    packed_parquet = suffix == ".parquet" and path.suffix.lower() != suffix
    if not path.is_file() or suffix not in suffixes or packed_parquet:
        what = (
            "does not exist"
            if not path.exists()
            else "is a folder"
            if path.is_dir()
            else "is another kind of file"
        )
        raise DataError(f"{path} {what}; give a file that ends in {', '.join(suffixes)}")
    if within:
        if suffix != ".json":
            raise DataError(
                f"{path} is no .json file, so it has no {within!r} with the rows; take that setting out"
            )
        return Json(path, longest=longest, within=within)
    return READERS[suffix](path, longest=longest)
