"""Stage `collect`: reads problems and proofs from the sources and filters them; it asks no model.

A source is read in one pass and written part by part; its record (`pv_data.run.collected`) says that it was read to its
end. Where a config raises the source's limit, the source is read again, and the rows that are new become further parts.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from pv_data.filters import geometry, language, length
from pv_data.plugins import SOURCES
from pv_data.records import OTHER_LABEL, Aside, Problem, Proof, Row
from pv_data.run.collected import (
    FOLDERS,
    Collected,
    checksums,
    drop_unfinished,
    is_collected,
    parts_of,
    read_collected,
)
from pv_data.run.config import Filters, RunConfig, Source
from pv_data.run.generate import methods
from pv_data.run.stage import ROWS
from pv_data.sources.opening import check_options, open_source
from pv_data.table import PartWriter, column, read_rows
from pv_judge.pages.text import plural, visible
from pv_rl.errors import ConfigError, DataError
from pv_rl.plugins import nearest

__all__ = ["SourceFilter", "check_entries", "check_names", "collect"]

PARTS = ("source", "method", "model")
"""Columns that make up the name of a slice."""


PART_ROWS = 4096
KINDS: dict[str, type[Row]] = {one.kind: one for one in (Problem, Proof, Aside)}


def check_entries(folder: Path, config: RunConfig) -> None:
    """Refuse sources, methods and options that do not exist, before a run's folder is made or compared with a config.

    A source that was read may be gone: its plugin is not needed any more.

    Raises:
        ConfigError: there is one.
    """
    methods(config)
    for number, source in enumerate(config.sources):
        if source.kind in SOURCES.entries() or not is_collected(folder, number):
            with _named(number):
                check_options(source.kind, SOURCES.named(source.kind).read, source.options)


def collect(folder: Path, config: RunConfig, console: Console) -> None:
    """Read the sources that have not been read, or not as far as their limit now says.

    Raises:
        ConfigError: a source that does not exist, or an option that it does not take.
        DataError: a file that is not what its kind says, or a source that gives other rows than before.
    """
    drop_unfinished(folder)
    records = {number: read_collected(folder, number) for number in range(len(config.sources))}
    opened: dict[int, Iterable[Problem | Proof | Aside]] = {}
    for number, source in enumerate(config.sources):  # all options are checked before the first file is read
        if (record := records[number]) is None or record.grows(source.limit):
            with _named(number):
                opened[number] = open_source(source.kind, Path(source.path), source.options)
    there = {problem.id for problem in read_rows(folder / "problems", Problem)}
    for number, read in opened.items():
        source, before = config.sources[number], records[number]
        own = {problem.id for problem in read_rows(parts_of(folder, number)["problem"], Problem)}
        rows_of = SourceFilter(config.filters, source, there - own, after=before.limit if before else None)
        writers = {kind: _writer(folder, kind, number) for kind in KINDS}
        counts = Counter[str]()
        with _named(number):
            for row in rows_of.keep(read):
                writers[row.kind].add(row)
                counts[_name(row)] += 1
        for writer in writers.values():
            writer.close()
        where = f"sources[{number}]" + (f" ({source.name})" if source.name else "")
        if before is not None and (
            rows_of.passed_over != before.counts or rows_of.problems_passed_over != own
        ):
            drop_unfinished(folder)
            raise DataError(
                f"{where} no longer gives the rows that the run has from it, so its limit cannot be raised. Choose "
                "another run_dir (copy answers.sqlite* there to keep the answers), or collect again with --redo collect"
            )
        there |= rows_of.problems
        record = Collected(
            counts=counts + rows_of.passed_over, parts=checksums(folder, number), limit=source.limit
        )
        record.write(folder, number)
        nouns = ("problem", "proof")
        found = (
            ", ".join(
                plural(count, what) if what in nouns else f"{count} {what}" for what, count in counts.items()
            )
            or "nothing"
        )
        more = " more" if before is not None else ""
        console.print(visible(f"{source.name or source.kind}: {found}{more}"), highlight=False, markup=False)


@contextlib.contextmanager
def _named(number: int) -> Iterator[None]:
    """Which source of the config an error is about: it speaks of the source's options only."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"sources[{number}]: {error}") from error


def _name(row: Row) -> str:
    return f"aside, {row.reason}" if isinstance(row, Aside) else row.kind


def _writer(folder: Path, kind: str, number: int) -> PartWriter[Any]:
    place, first = FOLDERS[kind], len(parts_of(folder, number)[kind])
    return PartWriter(
        KINDS[kind],
        lambda part: folder / place.format(f"{number:02d}-{first + part:05d}.parquet"),
        rows=PART_ROWS,
        group=ROWS,
    )


class SourceFilter:
    """Filters the rows of one source, and drops those that the run already has."""

    def __init__(
        self, filters: Filters, source: Source, there: Collection[str], *, after: int | None = None
    ) -> None:
        """
        Args:
            filters: of the run.
            source: whose rows they are; its name and split replace the rows' own.
            there: ids of the problems that are there from other sources.
            after: the limit to which the run has read the source: these rows are passed over.
        """
        self._filters, self._source, self._there, self._after = filters, source, there, after
        self.problems: set[str] = set()
        """Ids of the problems that pass."""
        self.passed_over = Counter[str]()
        """Rows that the run has, by kind or reason."""
        self.problems_passed_over: set[str] = set()
        """Ids of the problems among them."""
        self._names: dict[str, str] = {}
        """Ids of the problems that pass, by those that the source gave them."""
        self._proofs: dict[str, bool | None] = {}
        """Ids of the proofs that pass, with their labels."""
        self._proof_names: dict[str, str] = {}
        """Ids of the proofs that pass, by those that the source gave them."""

    def keep(self, rows: Iterable[Problem | Proof | Aside]) -> Iterator[Problem | Proof | Aside]:
        """Rows that pass, and an `Aside` for each that is rejected; ends at the source's `limit`."""
        begun = self._after is None
        for row in rows:
            if isinstance(row, Problem):
                if len(self._names) == self._source.limit:
                    return
                begun = begun or len(self._names) == self._after
            for made in self._made(row):
                if begun:
                    yield made
                else:
                    self.passed_over[_name(made)] += 1
                    if isinstance(made, Problem):
                        self.problems_passed_over.add(made.id)

    def _made(self, row: Problem | Proof | Aside) -> Iterator[Problem | Proof | Aside]:
        if isinstance(row, Problem):
            yield self._problem(row)
        elif isinstance(row, Proof):
            yield from self._proof(row)
        else:
            proof = (
                self._proof_names.get(row.row.removeprefix("proof ")) if row.reason == OTHER_LABEL else None
            )
            yield replace(row, row=proof or f"{self._source.name or self._source.kind}: {row.row}")

    def _problem(self, row: Problem) -> Problem | Aside:
        problem = replace(row, source=self._source.name or row.source, split=self._source.split or row.split)
        if problem.id in self._there or problem.id in self.problems:
            self._names[row.id] = problem.id
            return _aside(problem.native_id, "twice", "the same problem is there already", problem.text)
        if unfit := self._unfit(problem):
            return _aside(problem.native_id, *unfit, problem.text)
        self.problems.add(problem.id)
        self._names[row.id] = problem.id
        return problem

    def _unfit(self, problem: Problem) -> tuple[str, str] | None:
        filters = self._filters
        return (
            length(problem.text, *filters.problem_characters)
            or (geometry(problem) if filters.geometry else None)
            or language(problem, filters.languages)
        )

    def _proof(self, row: Proof) -> Iterator[Proof | Aside]:
        name = self._names.get(row.problem_id)
        if name is None:
            return  # its problem is aside already
        proof = replace(row, problem_id=name, source=self._source.name or row.source)
        if unfit := length(proof.text, *self._filters.proof_characters):
            yield _aside(proof.id, *unfit, proof.text)
        elif proof.id in self._proofs:
            reason = "twice" if self._proofs[proof.id] is proof.known else OTHER_LABEL
            yield _aside(proof.id, reason, "the same proof is there already", proof.text)
        else:
            self._proofs[proof.id] = proof.known
            self._proof_names[row.id] = proof.id
            yield proof


def _aside(row: str, reason: str, detail: str, content: str) -> Aside:
    return Aside(stage="collect", row=row, reason=reason, detail=detail, content=content[:2000])


def check_names(folder: Path, config: RunConfig) -> None:
    """Refuse names of sources and methods that no collected row has: their entries would select nothing.

    Raises:
        ConfigError: it names what there is.
    """
    sources = set(column(folder / "problems", "source"))
    brought = set(column(folder / "proofs", "method"))
    made = {spec.name or spec.method for spec in config.generate}
    for number, (spec, method) in enumerate(zip(config.generate, methods(config), strict=True)):
        _check_each(f"generate[{number}].sources", spec.sources, sources)
        if method.needs_proof:
            _check_each(f"generate[{number}].of", spec.of, brought)
    _check_each("labels.of", config.labels.of, brought | made)
    if config.split.discarded:
        _check_each("split.discarded", config.split.discarded, _slices(folder, config, sources))


def _slices(folder: Path, config: RunConfig, sources: Collection[str]) -> set[str]:
    """Slices of the proofs that are there, and of those that the config generates."""
    tables = (folder / "proofs", folder / "generated")
    rows = {key for table in tables for key in zip(*(column(table, part) for part in PARTS), strict=True)}
    rows |= {
        (source, spec.name or spec.method, spec.model)
        for spec in config.generate
        for source in spec.sources or sources
    }
    return {f"{source}/{method}/{model or '-'}" for source, method, model in rows}


def _check_each(where: str, given: Collection[str], there: Collection[str]) -> None:
    for name in given:
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise ConfigError(f"{where}: {name!r} does not exist.{nearest(name, there)} The run has {known}")
