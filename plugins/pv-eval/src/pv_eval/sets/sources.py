"""Sets that are a source of pv-data: `opc`, `processbench`, `dsmathv2`, `prmbench` and any other by its name.

A proof of the source is a pair if the source says whether it is right (`Proof.known`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof
from pv_eval.sets.base import Candidate, EvalSet, LeftOut, build_set
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError

__all__ = ["read_source", "source_rows"]


def read_source(
    source: str, path: Path | None, *, name: str = "", references: bool = False, **options: Any
) -> EvalSet:
    """The labelled proofs of a source.

    Args:
        source: its name, as in the config of a run.
        path: its file or folder; None for a source that needs none.
        name: of the set; the source's unless given.
        references: whether proofs that came with their problem, and are right by that, are pairs too. They are easy,
            and by default left out and counted.
        options: of the source.

    Raises:
        ConfigError: there is no such source, or an option it does not take.
        DataError: see `build_set`.
    """
    from pv_data.plugins import SOURCES, named
    from pv_data.sources.opening import open_source

    entry = named(SOURCES, source)
    place = path or entry.default_path
    if place is None:
        raise ConfigError(f"the set {source} needs a file: --set {source}:PATH")
    rows = source_rows(open_source(source, place, options), references=references)
    return build_set(name or source, list(rows))


def source_rows(
    read: Iterable[Problem | Proof | Aside], *, references: bool = False
) -> Iterator[Candidate | LeftOut]:
    """Pairs of what a source reads. A row that it sets aside is left out under the source's own reason."""
    problems: dict[str, Problem] = {}
    seen: set[str] = set()
    for row in read:
        if isinstance(row, Problem):
            problems[row.id] = row
        elif isinstance(row, Aside):
            yield LeftOut(row=row.row, reason=f"{row.stage}: {row.reason}")
        elif row.id in seen:
            yield LeftOut(row=row.id, reason="proof is there already")
        elif row.problem_id not in problems:
            yield LeftOut(row=row.id, reason="no problem")
        elif row.method == GROUND_TRUTH and not references:
            yield LeftOut(row=row.id, reason="reference proof")
        else:
            seen.add(row.id)
            yield _candidate(row, problems[row.problem_id])


def _candidate(proof: Proof, problem: Problem) -> Candidate:
    # A reference proof is right by what it is, where the source says nothing of it.
    known = True if proof.known is None and proof.method == GROUND_TRUTH else proof.known
    pair = Pair(
        pair_id=proof.id,
        question_id=problem.id,
        label=known,
        slice=proof.slice,
        question=problem.text,
        proof=proof.text,
    )
    rule = proof.known_by or ("reference proof" if proof.method == GROUND_TRUTH else "")
    return Candidate(pair=pair, rule=rule, problem_ids=frozenset({problem.id}))
