"""Stage `collect`: reads problems and proofs from the sources and filters them; it asks no model.

A source is read in one pass and written part by part; a marker file says that it was read to its end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from pv_data.filters import geometry, language, length
from pv_data.records import Aside, Problem, Proof, Row
from pv_data.run.config import Filters, RunConfig, Source
from pv_data.run.generate import methods
from pv_data.run.stage import ROWS
from pv_data.sources.opening import open_source
from pv_data.table import PartWriter, column, read_rows
from pv_judge.files import write_atomically
from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest

__all__ = ["SourceFilter", "check_names", "collect"]


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
        rows_of, counts = SourceFilter(config.filters, source, there), Counter[str]()
        writers = {kind: _writer(folder, kind, f"{number:02d}") for kind in FOLDERS}
        for row in rows_of.keep(read):
            writers[row.kind].add(row)
            counts[row.kind if not isinstance(row, Aside) else f"aside, {row.reason}"] += 1
        for writer in writers.values():
            writer.close()
        marker.parent.mkdir(exist_ok=True)
        write_atomically(marker, lambda path, counts=counts: path.write_text(json.dumps(counts)))
        found = ", ".join(f"{count} {what}" for what, count in counts.items()) or "nothing"
        console.print(f"{source.name or source.kind}: {found}", highlight=False, markup=False)


def _writer(folder: Path, kind: str, name: str) -> PartWriter[Any]:
    place, rows = FOLDERS[kind]
    return PartWriter(
        rows, lambda part: folder / place.format(f"{name}-{part:05d}.parquet"), rows=PART_ROWS, group=ROWS
    )


def _drop_unfinished(folder: Path) -> None:
    """Remove what an unfinished attempt has left, also of a source that the config no longer has."""
    whole = {marker.stem for marker in (folder / "collected").glob("*.json")}
    for place, _ in FOLDERS.values():
        for part in folder.glob(place.format("*.parquet")):
            if part.name.removeprefix("collect-").partition("-")[0] not in whole:
                part.unlink()


class SourceFilter:
    """Filters the rows of one source, and drops those that the run already has."""

    def __init__(self, filters: Filters, source: Source, there: set[str]) -> None:
        """
        Args:
            filters: of the run.
            source: whose rows they are; its name and split replace the rows' own.
            there: ids of the problems that are there; those that pass are added.
        """
        self._filters, self._source, self._there = filters, source, there
        self._names: dict[str, str] = {}
        """Ids of the problems that pass, by those that the source gave them."""
        self._proofs: set[str] = set()
        self._over = False

    def keep(self, rows: Iterable[Problem | Proof | Aside]) -> Iterator[Problem | Proof | Aside]:
        """Rows that pass, and an `Aside` for each that is rejected; ends at the source's `limit`."""
        for row in rows:
            if isinstance(row, Problem):
                if self._over:
                    return
                yield self._problem(row)
                self._over = len(self._names) == self._source.limit
            elif isinstance(row, Proof):
                yield from self._proof(row)
            else:
                yield replace(row, row=f"{self._source.name or self._source.kind}: {row.row}")

    def _problem(self, row: Problem) -> Problem | Aside:
        problem = replace(row, source=self._source.name or row.source, split=self._source.split or row.split)
        if problem.id in self._there:
            self._names[row.id] = problem.id
            return _aside(problem.native_id, "twice", "the same problem is there already", problem.text)
        if unfit := self._unfit(problem):
            return _aside(problem.native_id, *unfit, problem.text)
        self._there.add(problem.id)
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
            yield _aside(proof.id, "twice", "the same proof is there already", proof.text)
        else:
            self._proofs.add(proof.id)
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
    for name in config.split.discarded:
        source, _, rest = name.partition("/")
        method, _, model = rest.partition("/")
        _check_each("split.discarded, source", [source], sources)
        _check_each("split.discarded, method", [method], brought | made)
        models = {"-", *config.models, *column(folder / "proofs", "model")}
        _check_each("split.discarded, model", [model], models)


def _check_each(where: str, given: Collection[str], there: Collection[str]) -> None:
    for name in given:
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise ConfigError(f"{where}: {name!r} does not exist.{nearest(name, there)} The run has {known}")
