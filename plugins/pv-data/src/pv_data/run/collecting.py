"""The stage `collect`: problems and proofs from the sources; what is unfit, or there already, aside. It asks nobody.

A source is read in one go and written part by part; a file says that it was read to its end.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console

from pv_data.records import Aside, Problem, Proof, Row
from pv_data.run.chunk import ROWS
from pv_data.run.config import RunConfig
from pv_data.run.sieve import Sieve
from pv_data.sources.opening import open_source
from pv_data.table import read_rows, write_part
from pv_rl.files import write_atomically

__all__ = ["collect"]

PART_ROWS = 4096
FOLDERS: dict[str, tuple[str, type[Row]]] = {
    "problem": ("problems/{}", Problem),
    "proof": ("proofs/{}", Proof),
    "aside": ("aside/collect-{}", Aside),
}


def collect(folder: Path, config: RunConfig, console: Console) -> None:
    """Read the sources that have not been read.

    Raises:
        ConfigError: a source that does not exist, or an option that it does not take.
        DataError: a file that is not what its kind says.
    """
    done = {number: folder / "collected" / f"{number:02d}.json" for number in range(len(config.sources))}
    _drop_unfinished(folder)
    opened = {  # all options are looked at before the first file is read
        number: open_source(source.kind, Path(source.path), source.options)
        for number, source in enumerate(config.sources)
        if not done[number].exists()
    }
    there = {problem.id for problem in read_rows(folder / "problems", Problem)}
    for number, read in opened.items():
        source, marker = config.sources[number], done[number]
        sieve, counts = Sieve(config.filters, source, there), Counter[str]()
        writing = _Writing(folder, f"{number:02d}")
        for row in sieve.sift(read):
            writing.add(row)
            counts[row.kind if not isinstance(row, Aside) else f"aside, {row.reason}"] += 1
        writing.close()
        marker.parent.mkdir(exist_ok=True)
        write_atomically(marker, lambda path, counts=counts: path.write_text(json.dumps(counts)))
        told = ", ".join(f"{count} {what}" for what, count in counts.items()) or "nothing"
        console.print(f"{source.name or source.kind}: {told}", highlight=False, markup=False)


def _drop_unfinished(folder: Path) -> None:
    """What an attempt that did not end has left, also of a source that has been taken out since."""
    whole = {marker.stem for marker in (folder / "collected").glob("*.json")}
    for place, _ in FOLDERS.values():
        for part in folder.glob(place.format("*.parquet")):
            if part.name.removeprefix("collect-").partition("-")[0] not in whole:
                part.unlink()


class _Writing:
    """Rows to parts of their tables, a part at a time in memory."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._waiting: dict[str, list[Any]] = {kind: [] for kind in FOLDERS}
        self._written = Counter[str]()

    def add(self, row: Problem | Proof | Aside) -> None:
        self._waiting[row.kind].append(row)
        if len(self._waiting[row.kind]) == PART_ROWS:
            self._write(row.kind)

    def close(self) -> None:
        for kind in FOLDERS:
            if self._waiting[kind]:
                self._write(kind)

    def _write(self, kind: str) -> None:
        place, rows = FOLDERS[kind]
        path = self._folder / place.format(f"{self._name}-{self._written[kind]:05d}.parquet")
        write_part(path, rows, self._waiting[kind], group=ROWS)
        self._written[kind] += 1
        self._waiting[kind] = []
