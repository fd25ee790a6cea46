"""A stage is done in chunks: some rows of its input, done whole, and written as one part of each table it makes.

A chunk is a row group of an input part, so that any process can do any chunk, in any order, and the tables come out the
same. A chunk is done when its last file is there; one that was interrupted is done again, from answers that were kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pv_data.asking.kept_answers import Question
from pv_data.asking.settings import Model
from pv_data.records import Aside, Row
from pv_data.run.config import RunConfig
from pv_data.run.portions import portions
from pv_data.table import groups, parts, read_rows, write_part

__all__ = [
    "ROWS",
    "Asked",
    "Chunk",
    "Done",
    "Job",
    "Work",
    "aside_of",
    "chunks_of",
    "forget",
    "is_done",
    "lanes",
    "moneys",
    "owners",
    "pending",
    "write",
]


ROWS = 64
"""Of a chunk."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Where a chunk's rows are."""

    part: Path
    group: int
    """Number of the row group."""
    spec: int = 0
    """For a stage that goes over its input several times: which time."""

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.spec:02d}-{self.part.stem}-{self.group:06d}"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a chunk."""

    model: str
    """Its name in the config."""
    question: Question
    sample: int


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a chunk gave."""

    tables: dict[str, Sequence[Row]]
    """By folder; the job's last table last."""


class Work(Protocol):
    """A job, opened in one process."""

    async def do(self, chunk: Chunk) -> Done:
        """A `Stopped` where the run ends before the chunk is done."""
        ...

    def stop(self, why: str) -> None:
        """Send nothing any more."""
        ...


class Job(Protocol):
    """A stage's work as it goes to a process: small, picklable."""

    @property
    def run(self) -> Path:
        """The run's folder."""
        ...

    @property
    def config(self) -> RunConfig:
        """Of the run."""
        ...

    @property
    def stage(self) -> str:
        """Its name."""
        ...

    @property
    def tables(self) -> Mapping[str, type[Row]]:
        """Folders of the run that it fills, and the kind of their rows. The last is written last: it stands for all."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """All of them, in order."""
        ...

    def at_once(self, of: int) -> int:
        """How many chunks one of `of` processes has in the works, so that no place at a model stays empty."""
        ...

    def questions(self, chunk: Chunk) -> int:
        """How many questions it asks at most, for the progress bar."""
        ...

    @property
    def models(self) -> set[str]:
        """That it asks, by their names in the config."""
        ...

    @property
    def parse(self) -> Callable[[str], Any] | None:
        """What answers are read by; see `Asker.ask`."""
        ...

    def asks(self) -> Callable[[Chunk], Iterator[Asked]]:
        """From a chunk to all that it asks: just what its work asks. Reads the problems, once."""
        ...

    def with_served(self, served: Mapping[str, Model]) -> Job:
        """The same, knowing how local models are reached, by their names."""
        ...

    def opened(self, part: int, of: int, money: float) -> AbstractAsyncContextManager[Work]:
        """Ready to work as one of `of` processes, with this part of the money that is left."""
        ...


def chunks_of(table: Path, kind: type[Row], spec: int = 0) -> Iterator[Chunk]:
    """The row groups of a table, in order."""
    for part in parts(table):
        for group in range(groups(part, kind)):
            yield Chunk(part=part, group=group, spec=spec)


def is_done(job: Job, chunk: Chunk) -> bool:
    """Whether all that the chunk gives is on disk. What is set aside has no file where there is nothing."""
    return all(_path(job, folder, chunk).exists() for folder in job.tables if folder != "aside")


def pending(job: Job, part: int = 0, of: int = 1) -> Iterator[Chunk]:
    """The chunks that one of `of` processes has still to do. Whose a chunk is does not hang on what is done."""
    for chunk, owner in _owned(job, of):
        if owner == part and not is_done(job, chunk):
            yield chunk


def _owned(job: Job, of: int) -> Iterator[tuple[Chunk, int]]:
    return zip(job.chunks(), owners(job, of), strict=False)  # owners have no end


def owners(job: Job, of: int) -> Iterator[int]:
    """Which of `of` processes does the first chunk, the second, and so on without end: by their `portions`."""
    parts, taken = portions(job.config, job.models, of), [0] * of
    while True:
        part = min(range(of), key=lambda one: (taken[one] + 1) / parts[one])
        taken[part] += 1
        yield part


def moneys(job: Job, of: int) -> list[float]:
    """What part of the money each of `of` processes gets: that of the questions which it has still to ask."""
    if job.config.budget_usd is None or of == 1:
        return [1.0] * of
    asked = [0] * of
    for chunk, owner in _owned(job, of):
        if not is_done(job, chunk):
            asked[owner] += job.questions(chunk)
    return [one / max(1, sum(asked)) for one in asked]


def forget(job: Job, chunk: Chunk) -> None:
    """Have a chunk done again."""
    _path(job, list(job.tables)[-1], chunk).unlink(missing_ok=True)


def aside_of(job: Job, chunk: Chunk) -> list[Aside]:
    """What a chunk set aside."""
    path = _path(job, "aside", chunk)
    return list(read_rows(path, Aside)) if path.exists() else []


def lanes(concurrency: int, questions: int) -> int:
    """How many chunks of so many questions keep so many places taken, also while some of them end."""
    return 1 + math.ceil(2 * concurrency / max(1, questions))


def write(job: Job, chunk: Chunk, done: Done) -> None:
    """Write a chunk's tables, and the file that says that it is done last."""
    for folder, kind in job.tables.items():
        rows: Any = done.tables.get(folder, ())
        path = _path(job, folder, chunk)
        if folder == "aside" and not rows:  # most chunks have none
            path.unlink(missing_ok=True)
        else:
            write_part(path, kind, rows, group=ROWS)


def _path(job: Job, folder: str, chunk: Chunk) -> Path:
    prefix = f"{job.stage}-" if folder == "aside" else ""
    return job.run / folder / f"{prefix}{chunk.name}.parquet"
