"""Source `prmbench`: clean solutions in steps, and the same with errors of nine kinds.

Song et al., 2025, https://github.com/ssmisya/PRMBench, Apache-2.0. `original_process` answers `original_question` and
is from PRM800K; `modified_process` answers `modified_question`; `error_steps` are its wrong steps, from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import Aside, MarkedProof, Problem, Proof
from pv_data.sources.reading.assemble import assemble
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.rows import TABLES
from pv_data.sources.reading.unusable import Unusable, aside
from pv_rl.errors import ConfigError

__all__ = ["CLEAN", "CORRUPTED", "read"]

CLEAN, CORRUPTED = "clean", "corrupted"
"""Methods."""
NO_ERROR = "multi_solutions"
"""The kind whose modified process is another right solution."""


def read(path: Path, *, not_wrong: Sequence[str] = ("redundency",)) -> Read:
    """Problems, clean solutions (right) and corrupted ones (wrong).

    Args:
        not_wrong: kinds (as the file spells them) whose corrupted solution gets no label: a step too many does not make
            a solution wrong.
    """
    if not isinstance(not_wrong, list | tuple) or not all(isinstance(one, str) for one in not_wrong):
        raise ConfigError(
            f"not_wrong={not_wrong!r}; it is a list of PRMBench's kinds, for example [redundency]"
        )
    yield from assemble(path, TABLES, lambda row: _rows(row, frozenset(not_wrong)), repeats=(CLEAN,))


def _rows(row: Fields, not_wrong: frozenset[str]) -> Iterator[Problem | Proof | Aside]:
    try:
        clean = _problem(row, "original_question")
        yield clean
        yield MarkedProof(
            problem_id=clean.id,
            source=clean.source,
            method=CLEAN,
            text=row.steps("original_process"),
            known=True,
            known_by="PRM800K: no wrong step",
            first_error=0,
            steps=row.texts("original_process"),
        )
    except Unusable as error:
        yield aside(f"{row.where}:original", error.reason, error.detail)
    problem = _problem(row, "modified_question")
    yield problem
    kind = row.text("classification")
    known = None if kind in not_wrong else _label(row, kind)
    yield MarkedProof(
        problem_id=problem.id,
        source=problem.source,
        method=CORRUPTED,
        text=row.steps("modified_process"),
        known=known,
        known_by="" if known is None else f"corruption: {kind}",
        first_error=None if known is None else min(row.items("error_steps"), default=0),
        steps=row.texts("modified_process"),
    )


def _problem(row: Fields, key: str) -> Problem:
    name = row.text("idx")
    return Problem(
        source="PRMBench",
        native_id=name,
        text=row.text(key),
        licence="Apache-2.0",
        url=f"ssmisya/PRMBench {name}",
    )


def _label(row: Fields, kind: str) -> bool:
    wrong, steps = row.items("error_steps"), len(row.items("modified_process"))
    if not all(isinstance(one, int) and not isinstance(one, bool) and 1 <= one <= steps for one in wrong):
        raise Unusable("no label: error_steps", f"error_steps are numbers from 1 to {steps}")
    if bool(wrong) == (kind == NO_ERROR):
        raise Unusable(
            "no label: error_steps", f"{len(wrong)} wrong steps in a row of the kind {kind[:60]!r}"
        )
    return kind == NO_ERROR
