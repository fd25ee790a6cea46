"""Resumable stage: its input is divided into chunks, and each chunk is written as one part of each output table.

A chunk is a row group of an input part, so that any process can do any chunk, in any order, and the tables come out the
same. A chunk is done when its last file exists. An interrupted chunk is done again, from the answers that were kept.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pv_data.asking.asker import Asker
from pv_data.asking.kept_answers import Question
from pv_data.asking.settings import Model, places, share
from pv_data.records import Aside, Problem, Proof, Row
from pv_data.run.config import RunConfig
from pv_data.run.folder import answers_path, budget_of, note_refusal, unanswered_path
from pv_data.table import groups, parts, read_rows, write_part
from pv_judge.spend_file import SpendFile
from pv_rl.errors import DataError

__all__ = [
    "ROWS",
    "Asked",
    "Chunk",
    "Job",
    "Resources",
    "Tables",
    "budget_shares",
    "chunks_of",
    "forget",
    "is_done",
    "open_resources",
    "owners",
    "pending",
    "problem_of",
    "read_problems",
    "rejected_of",
    "shards",
    "write",
]

ROWS = 64
"""Rows of a chunk."""
Tables: TypeAlias = Mapping[str, Sequence[Row]]
"""Rows by the folder of their table."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Where a chunk's rows are."""

    part: Path
    group: int
    """Number of the row group."""
    spec: int = 0
    """Number of the pass, for a stage that reads its input several times."""

    @property
    def name(self) -> str:
        """Name of its files, without the ending."""
        return f"{self.spec:02d}-{self.part.stem}-{self.group:06d}"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a chunk."""

    model: str
    """The model's name in the config."""
    question: Question
    sample: int


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a stage needs in one process: model clients and problems."""

    askers: dict[str, Asker]
    """By the model's name in the config."""
    problems: dict[str, Problem]
    """By id. A process holds all of them: they are few beside their proofs."""

    def problem_of(self, proof: Proof) -> Problem:
        """The problem of a proof.

        Raises:
            DataError: the problem is missing.
        """
        return problem_of(self.problems, proof)

    def stop(self, why: str) -> None:
        """Send no more requests."""
        for asker in self.askers.values():
            asker.stop(why)


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A stage of a run, as it is sent to a process: small and picklable."""

    stage: ClassVar[str]
    tables: ClassVar[Mapping[str, type[Row]]]
    """Folders of the stage, and the kind of their rows. The last one is written last: it marks a chunk done."""

    run: Path
    """The run's folder."""
    config: RunConfig
    served: Mapping[str, Model] = field(default_factory=dict)
    """How the local models are reached, by their names in the config."""

    @property
    @abstractmethod
    def asks_a_row(self) -> list[tuple[str, int]]:
        """Models by their names in the config, and how many questions a row asks of each."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All chunks, in order."""

    @abstractmethod
    def questions(self, chunk: Chunk) -> int:
        """The most questions that a chunk asks, for the progress bar."""

    @abstractmethod
    def asks(self) -> Callable[[Chunk], Iterator[Asked]]:
        """From a chunk to exactly the questions that its work asks. Reads the problems once."""

    @abstractmethod
    def work(self, resources: Resources) -> Callable[[Chunk], Awaitable[Tables]]:
        """From a chunk to the rows that it makes. Raises `Stopped` if the run ends before the chunk is done."""

    @property
    def models(self) -> set[str]:
        """Models that the stage asks, by their names in the config."""
        return {name for name, _ in self.asks_a_row}

    def at_once(self, of: int) -> int:
        """Chunks that one of `of` processes does together, so that it uses all its slots at each model, also while some
        chunks end."""
        models = self.config.models
        needed = [
            1 + math.ceil(2 * (models[name].limits.concurrency // of) / (ROWS * number))
            for name, number in self.asks_a_row
        ]
        return max(needed, default=1)

    def with_served(self, served: Mapping[str, Model]) -> Job:
        """The same job, with the servers of its local models."""
        return replace(self, served=served)


def chunks_of(table: Path, kind: type[Row], spec: int = 0) -> Iterator[Chunk]:
    """The row groups of a table, in order."""
    for part in parts(table):
        for group in range(groups(part, kind)):
            yield Chunk(part=part, group=group, spec=spec)


def is_done(job: Job, chunk: Chunk) -> bool:
    """Whether all files of a chunk exist. Rejected rows have no file if there are none."""
    return all(_path(job, folder, chunk).exists() for folder in job.tables if folder != "aside")


def pending(job: Job, part: int = 0, of: int = 1) -> Iterator[Chunk]:
    """The chunks that one of `of` processes still has to do. A chunk's owner does not depend on what is done."""
    for chunk, owner in _owned(job, of):
        if owner == part and not is_done(job, chunk):
            yield chunk


def owners(job: Job, of: int) -> Iterator[int]:
    """Which of `of` processes owns the first chunk, the second, and so on without end: by their `shards`."""
    parts, taken = shards(job.config, job.models, of), [0] * of
    while True:
        part = min(range(of), key=lambda one: (taken[one] + 1) / parts[one])
        taken[part] += 1
        yield part


def shards(config: RunConfig, names: set[str], of: int) -> list[float]:
    """The share of the work that each of `of` processes can do in the same time; they add up to 1.

    A process is limited by the model at which it has the smallest share of the slots: of 102 slots two of eight
    processes have 12, the others 13. Rates per minute are divided equally.

    Args:
        config: of the run.
        names: models that the stage asks.
        of: number of processes.
    """
    limits = [config.models[name].limits for name in sorted(names)]
    equal = any(one.requests_per_minute or one.tokens_per_minute for one in limits)
    parts = [
        min(
            [places(one.concurrency, part, of) / one.concurrency for one in limits] + [1 / of] * equal,
            default=1 / of,
        )
        for part in range(of)
    ]
    return [one / sum(parts) for one in parts]


def budget_shares(job: Job, of: int) -> list[float]:
    """The share of the remaining budget that each of `of` processes gets: that of the questions it still has to ask."""
    if job.config.budget_usd is None or of == 1:
        return [1.0] * of
    asked = [0] * of
    for chunk, owner in _owned(job, of):
        if not is_done(job, chunk):
            asked[owner] += job.questions(chunk)
    return [one / max(1, sum(asked)) for one in asked]


def forget(job: Job, chunk: Chunk) -> None:
    """Mark a chunk as not done."""
    _path(job, list(job.tables)[-1], chunk).unlink(missing_ok=True)


def rejected_of(job: Job, chunk: Chunk) -> list[Aside]:
    """The rejected rows of a chunk."""
    path = _path(job, "aside", chunk)
    return list(read_rows(path, Aside)) if path.exists() else []


def write(job: Job, chunk: Chunk, made: Tables) -> None:
    """Write a chunk's tables; the file that marks it done comes last."""
    for folder, kind in job.tables.items():
        rows: Any = made.get(folder, ())
        path = _path(job, folder, chunk)
        if folder == "aside" and not rows:  # most chunks have none
            path.unlink(missing_ok=True)
        else:
            write_part(path, kind, rows, group=ROWS)


def read_problems(run: Path) -> dict[str, Problem]:
    """The run's problems by id."""
    return {problem.id: problem for problem in read_rows(run / "problems", Problem)}


def problem_of(problems: Mapping[str, Problem], proof: Proof) -> Problem:
    """The problem of a proof; raises `DataError` if it is missing."""
    try:
        return problems[proof.problem_id]
    except KeyError:
        raise DataError(
            f"the problem {proof.problem_id} of the proof {proof.id} is in no part of problems/; restore it, or "
            "collect again with --redo collect"
        ) from None


@contextlib.asynccontextmanager
async def open_resources(job: Job, part: int, of: int, money: float) -> AsyncIterator[Resources]:
    """Open what one of `of` processes needs, with its share of the remaining budget.

    Raises:
        ConfigError: an API key is not in the environment.
    """
    run, config = job.run, job.config
    budget = budget_of(run, config, money)
    folder = run / "workers" / str(part)
    folder.mkdir(parents=True, exist_ok=True)
    spending = SpendFile(folder, budget)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(spending.close)
        askers: dict[str, Asker] = {}
        for name in sorted(job.models):
            model, server = (
                share(one, part, of, answers_path(run)) if one else None
                for one in (config.models[name], job.served.get(name))
            )
            assert model is not None
            askers[name] = Asker(
                model,
                budget,
                unanswered_path(run),
                through=server,
                patience=config.patience,
                spent=spending.save,
                refused=partial(note_refusal, folder),
            )
            stack.push_async_callback(askers[name].aclose)
        yield Resources(askers=askers, problems=read_problems(run))


def _owned(job: Job, of: int) -> Iterator[tuple[Chunk, int]]:
    return zip(job.chunks(), owners(job, of), strict=False)  # owners have no end


def _path(job: Job, folder: str, chunk: Chunk) -> Path:
    prefix = f"{job.stage}-" if folder == "aside" else ""
    return job.run / folder / f"{prefix}{chunk.name}.parquet"
