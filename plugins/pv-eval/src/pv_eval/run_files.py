"""Run files: a folder with `pairs.parquet`, `votes.parquet` and `run.json`, one verifier on one set.

pairs.parquet   pair_id, question_id, slice, question, proof, reference, rubric (text), label (bool, null: unknown),
                weight (double), grade (double, null), first_error (int64, null), steps (list of text)
votes.parquet   pair_id, question_id (text), sample (int64), verdict (bool, null: missing), length (double, null),
                trace (text, null: not kept), logit, grade, usd (double, null), first_error (int64, null)
run.json        the fields of `RunInfo`

Each file carries the version of this format: tables as the metadata `pv_data.evaluate`, run.json as `format`. A table
may lack columns that have a default; other columns are ignored; a file of a later version is refused.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pv_eval.votes import Pair, Vote
from pv_judge.files import load_json, write_together
from pv_judge.pages.text import natural
from pv_rl.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMAT", "LENGTH_UNITS", "RUN", "RunInfo", "find_runs", "read_info", "read_run", "write_run"]

FORMAT = 2
"""Version of the format of a run on disk. Version 1 had neither grades nor steps, and is read."""
LENGTH_UNITS = ("tokens", "characters")
LARGEST = 1_000_000
"""Bytes of a run.json."""
KEY = "pv_data.evaluate"
PAIRS, VOTES, RUN = "pairs.parquet", "votes.parquet", "run.json"
DEPTH, MOST_FOLDERS = 6, 10_000
"""How far, and through how many folders, runs are searched."""
TYPES = {
    "string": ("pair_id", "question_id", "slice", "question", "proof", "trace", "reference", "rubric"),
    "bool": ("label", "verdict"),
    "double": ("weight", "length", "logit", "grade", "usd"),
    "int64": ("sample", "first_error"),
    "list<string>": ("steps",),
}
TYPE_OF = {column: name for name, columns in TYPES.items() for column in columns}
UNCONVERTED = {
    "string": ("string", "large_string", "null"),
    "bool": ("bool", "null"),
    "list<string>": ("list<element: string>", "list<item: string>"),
}
"""Types that are read as these; any other is refused: a 1 is not True, and a number is not an id."""

Row = TypeVar("Row", Pair, Vote)


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What was sampled, and how."""

    verifier: str
    """The verifier's name in tables."""
    set_name: str = ""
    """For `curated`, `opc`, `proofbench` and others of the paper the report shows its numbers too."""
    length_unit: str = "characters"
    """Of the traces' length: `tokens` or `characters`."""
    verdict_format: str = "verdict"
    """Name of the format of `pv_verdicts` that the traces were read by."""
    grades: tuple[float, ...] = ()
    """Of a graded run, the allowed grades in points, ascending; the last is full points."""
    temperature: float | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()
    """Sentences that the report repeats: what an adapter left out, what was not run."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Anything else, as JSON; the report's JSON copies it."""

    def __post_init__(self) -> None:
        notes = isinstance(self.notes, tuple | list) and all(isinstance(note, str) for note in self.notes)
        grades = isinstance(self.grades, tuple | list) and all(
            one is not None and _number(one, int | float) for one in self.grades
        )
        for name, allowed, holds in (
            (
                "verifier",
                "a text that is not blank",
                isinstance(self.verifier, str) and self.verifier.strip(),
            ),
            ("set_name", "a text", isinstance(self.set_name, str)),
            ("length_unit", " or ".join(LENGTH_UNITS), self.length_unit in LENGTH_UNITS),
            ("temperature", "a finite number or null", _number(self.temperature, int | float)),
            ("verdict_format", "a text", isinstance(self.verdict_format, str)),
            (
                "grades",
                "none, or two or more different numbers, ascending, the first 0 or more",
                grades
                and len(self.grades) != 1
                and list(self.grades) == sorted(set(self.grades))
                and all(one >= 0 for one in self.grades),
            ),
            ("seed", "a whole number or null", _number(self.seed, int)),
            ("notes", "a list of sentences", notes),
            ("settings", "values by name", isinstance(self.settings, Mapping)),
        ):
            if not holds:
                raise DataError(f"a run has {name}={getattr(self, name)!r:.80}; expected {allowed}")
        object.__setattr__(self, "notes", tuple(self.notes))
        object.__setattr__(self, "grades", tuple(self.grades))


def _number(value: Any, kind: Any) -> bool:
    return value is None or (isinstance(value, kind) and not isinstance(value, bool) and abs(value) < 1e300)


def write_run(folder: str | Path, pairs: Iterable[Pair], votes: Iterable[Vote], info: RunInfo) -> None:
    """Write the three files, all or none. Creates the folder.

    Raises:
        DataError: the settings have a value that JSON does not have.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_together(
        {
            folder / PAIRS: _to_parquet(Pair, pairs),
            folder / VOTES: _to_parquet(Vote, votes),
            folder / RUN: _to_json(info),
        }
    )


def find_runs(folders: Iterable[Path]) -> list[Path]:
    """Runs in folders: each folder itself if it is a run, then those inside it by name, each run once.

    A folder with `votes.parquet` is a run. Links, hidden folders and folders more than six levels down are left out.

    Raises:
        DataError: a folder is missing or has no run, or has too many folders to search.
        OSError: a folder cannot be read.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise DataError(f"there is no folder {folder}; a run is a folder with {PAIRS}, {VOTES}, {RUN}")
        inside = _runs_inside(folder)
        if not inside:
            raise DataError(
                f"{folder} has no {VOTES}, and no folder in it has one (links in it are not followed); a run is a "
                f"folder with {PAIRS}, {VOTES}, {RUN}"
            )
        for run in inside:
            found.setdefault(run.resolve(), run)
    return list(found.values())


def _runs_inside(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise error

    runs = []
    for number, (path, names, files) in enumerate(os.walk(folder, onerror=fail)):
        if number == MOST_FOLDERS:
            raise DataError(
                f"{folder} has more than {MOST_FOLDERS} folders; name the runs, or a smaller folder"
            )
        here = Path(path)
        if VOTES in files:
            runs.append(here)
        deep = len(here.relative_to(folder).parts) >= DEPTH
        names[:] = [] if deep else sorted((one for one in names if not one.startswith(".")), key=natural)
    return runs


def read_run(folder: str | Path, *, traces: bool = True) -> tuple[list[Pair], list[Vote], RunInfo]:
    """Read a run. `check` checks it across rows.

    Args:
        folder: of the three files.
        traces: whether to read the traces, by far the largest column.

    Raises:
        DataError: a file is missing, is not one of a run, is of a later version, or has an invalid value.
    """
    folder = Path(folder)
    lacking = [name for name in (PAIRS, VOTES, RUN) if not (folder / name).is_file()]
    if lacking:
        raise DataError(
            f"{folder} has no {' and no '.join(lacking)}; a run is a folder with {PAIRS}, {VOTES}, {RUN}"
        )
    votes = _from_parquet(Vote, folder / VOTES, without=() if traces else ("trace",))
    return _from_parquet(Pair, folder / PAIRS), votes, _from_json(folder / RUN)


def read_info(folder: Path) -> RunInfo:
    """Read what was sampled, without its votes.

    Raises:
        DataError: run.json is not one of a run, or is of a later version.
    """
    return _from_json(folder / RUN)


def _to_parquet(kind: type[Row], rows: Iterable[Row]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def clean(value: Any) -> Any:
        """Halves of surrogate pairs and whole numbers beyond int64 cannot be stored."""
        if isinstance(value, tuple):
            return [clean(one) for one in value]
        if type(value) is int and not -(2**63) <= value < 2**63:
            return float(value)
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value

    listed = list(rows)
    schema = pa.schema(
        [(one.name, _type(TYPE_OF[one.name])) for one in fields(kind)],
        metadata={KEY: f"{kind.__name__.lower()} {FORMAT}"},
    )
    table = pa.table({name: [clean(getattr(row, name)) for row in listed] for name in schema.names}, schema)
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _from_parquet(kind: type[Row], path: Path, without: Sequence[str] = ()) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read([name for name in file.schema_arrow.names if name not in without])
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    marked = ((table.schema.metadata or {}).get(KEY.encode()) or b"").decode("utf-8", "replace")
    word, _, version = marked.partition(" ")
    if word != kind.__name__.lower() or not version.isdecimal() or int(version) > FORMAT:
        raise DataError(
            f"{path} has the metadata {KEY}={marked!r:.60}; expected '{kind.__name__.lower()} 1' to {FORMAT}. Write it "
            "with pv_eval.write_run, or install a newer pv-eval"
        )
    required = [one.name for one in fields(kind) if one.default is MISSING]
    lacking = [name for name in required if name not in table.column_names]
    if lacking:
        raise DataError(f"{path} lacks the columns {', '.join(lacking)}")
    names = [one.name for one in fields(kind) if one.name in table.column_names]
    rows: list[Row] = []
    for values in zip(*(_column(table, name, path) for name in names), strict=True):
        try:
            rows.append(kind(**dict(zip(names, values, strict=True))))
        except DataError as error:
            raise DataError(f"{path}, row {len(rows)}: {error}") from error
    return rows


def _type(name: str) -> pa.DataType:
    import pyarrow as pa

    return pa.list_(pa.string()) if name == "list<string>" else pa.type_for_alias(name)


def _column(table: pa.Table, name: str, path: Path) -> list[Any]:
    import pyarrow as pa

    column, wanted = table.column(name), TYPE_OF[name]
    try:
        if str(column.type) not in UNCONVERTED.get(wanted, (str(column.type),)):
            raise pa.ArrowTypeError("values are not converted")
        return column.cast(_type(wanted)).to_pylist()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the column {name} is {column.type}, expected {wanted}: {error}") from error


def _to_json(info: RunInfo) -> bytes:
    try:
        text = json.dumps({"format": FORMAT, **asdict(info)}, ensure_ascii=False, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"the settings of a run have a value that JSON does not have: {error}") from error
    return (text + "\n").encode("utf-8", "replace")


def _from_json(path: Path) -> RunInfo:
    if path.stat().st_size > LARGEST:
        raise DataError(f"{path} has more than {LARGEST} bytes, so it is not the run.json of a run")
    try:
        given = load_json(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from error
    known = [one.name for one in fields(RunInfo)]
    if not isinstance(given, dict):
        raise DataError(f"{path} is not a JSON object; expected the keys {', '.join(known)}")
    version = given.pop("format", None)
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise DataError(f"{path} has format={version!r:.40}; this version reads 1 to {FORMAT}")
    if given.keys() - set(known) or "verifier" not in given:
        raise DataError(
            f"{path} has the keys {', '.join(given)[:200]}; expected verifier, and optionally {', '.join(known[1:])}. "
            "Put anything else into settings"
        )
    try:
        return RunInfo(**given)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
