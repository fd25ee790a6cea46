"""What of a source goes on: problems and proofs that pass the filters and are not there already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pv_data.filters import geometry, language, length
from pv_data.records import Aside, Problem, Proof
from pv_data.run.config import Filters, Source

__all__ = ["Sieve"]


class Sieve:
    """For one source."""

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

    def sift(self, rows: Iterable[Problem | Proof | Aside]) -> Iterator[Problem | Proof | Aside]:
        """What passes as it passes, and everything else as an `Aside`; it ends with the source's `limit`."""
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
