"""Hugging Face dataset folder: Parquet by split, and a README.md that is the dataset card.

`datasets.load_dataset(FOLDER)` reads it, and checks the numbers of rows against the card's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_data.export.storage import ParquetStream, whole_folder
from pv_data.records import Qpc, Slice
from pv_rl.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FEATURES", "Written", "write_dataset"]

SHARD_ROWS = 50_000
FEATURES = {
    "id": "string",
    "problem_id": "string",
    "problem": "string",
    "proof": "string",
    "label": "bool",
    "rule": "string",
    "slice": "string",
    "source": "string",
    "method": "string",
    "model": "string",
    "consistent": "bool",
    "votes": "list<bool>",
    "licence": "string",
}
"""Columns, and their types as the card names them."""


@dataclass(kw_only=True)
class Written:
    """What is in the folder, counted while it was written."""

    rows: Counter[str] = field(default_factory=Counter)
    """By split."""
    bytes: Counter[str] = field(default_factory=Counter)
    """In memory, by split."""
    download: int = 0
    """Bytes of all files."""
    labels: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """By split and label."""
    slices: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """By split, slice and label."""
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By split and rule."""
    by_panel: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rows whose label is the panel's, by split and slice."""
    inconsistent: Counter[str] = field(default_factory=Counter)
    """Rows on which the judges differed, by split."""
    problems: dict[str, set[str]] = field(default_factory=dict)
    """Ids by split."""
    licences: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By source and licence."""

    def by_slice(self, split: str) -> Counter[tuple[str, bool]]:
        """Rows of a split by slice and label."""
        return Counter({(name, label): n for (one, name, label), n in self.slices.items() if one == split})

    def count(self, row: Qpc) -> None:
        self.rows[row.split] += 1
        self.labels[row.split, row.label] += 1
        self.slices[row.split, row.slice, row.label] += 1
        self.rules[row.split, row.rule] += 1
        self.by_panel[row.split, row.slice] += row.rule.startswith("panel: ")
        self.inconsistent[row.split] += not row.consistent
        self.problems.setdefault(row.split, set()).add(row.problem_id)
        self.licences[Slice.read(row.slice).source, row.licence] += 1


def write_dataset(
    folder: Path, triples: Iterable[Qpc], card: Callable[[Written], str], *, shard_rows: int = SHARD_ROWS
) -> Written:
    """Write `folder` whole or not at all.

    Args:
        card: the README.md for what was written.
        shard_rows: rows of a file at most.

    Raises:
        DataError: there is no row at all.
        ConfigError: the folder holds something else.
    """
    if shard_rows < 1:
        raise ConfigError(f"shard_rows={shard_rows}; a file holds 1 row or more")
    written = Written()
    with whole_folder(folder) as new:
        data = new / "data"
        data.mkdir()
        shards: dict[str, list[ParquetStream]] = {}
        with ExitStack() as open_files:
            for triple in triples:
                of_split = shards.setdefault(triple.split, [])
                if not of_split or of_split[-1].rows >= shard_rows:
                    stream = ParquetStream(data / f"{triple.split}-{len(of_split):05d}.parquet", _schema())
                    of_split.append(open_files.enter_context(stream))
                of_split[-1].add(_row(triple))
                written.count(triple)
        if not shards:
            raise DataError("there is no triple to export: no proof has a label")
        for split, streams in shards.items():
            for number, stream in enumerate(streams):
                name = f"{split}-{number:05d}-of-{len(streams):05d}.parquet"
                written.download += stream.path.stat().st_size
                written.bytes[split] += stream.bytes
                stream.path.rename(data / name)
        (new / "README.md").write_text(card(written), encoding="utf-8", errors="replace")
    return written


def _row(triple: Qpc) -> dict[str, Any]:
    slice_ = Slice.read(triple.slice)
    return {
        "id": triple.id,
        "problem_id": triple.problem_id,
        "problem": triple.problem,
        "proof": triple.proof,
        "label": triple.label,
        "rule": triple.rule,
        "slice": triple.slice,
        "source": slice_.source,
        "method": slice_.method,
        "model": slice_.model,
        "consistent": triple.consistent,
        "votes": list(triple.votes),
        "licence": triple.licence,
    }


def _schema() -> pa.Schema:
    import pyarrow as pa

    types = {"string": pa.string(), "bool": pa.bool_(), "list<bool>": pa.list_(pa.bool_())}
    return pa.schema([(name, types[kind]) for name, kind in FEATURES.items()])
