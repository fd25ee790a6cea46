"""Source `student`: student work that two people marked; right if and only if both gave full marks, as in the paper.

A CSV, JSON or Parquet file with the columns problem, answer, score_1 and score_2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof
from pv_data.sources.reading.assemble import assemble
from pv_data.sources.reading.columns import check_columns, columns_of, native_id, renamed
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.rows import TABLES
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["MEANINGS", "read"]

MEANINGS = ("problem", "answer", "score_1", "score_2", "full", "id", "subject", "language")


def read(
    path: Path,
    *,
    full: float | None = None,
    columns: Mapping[str, str] | None = None,
    short: int = 20,
    licence: str = "",
) -> Read:
    """Problems and the students' proofs.

    Args:
        full: full marks; None: each row says its own, in the column `full`.
        columns: which column of the file is what; see `MEANINGS`.
        short: answers of fewer characters are set aside.
        licence: of the work.
    """
    chosen = check_columns(columns or {}, MEANINGS)
    if full is not None and (
        isinstance(full, bool) or not isinstance(full, int | float) or not 0 < full < 1e6
    ):
        raise ConfigError(f"full={full!r}; it is the number of full marks, above 0")
    if isinstance(short, bool) or not isinstance(short, int) or short < 1:
        raise ConfigError(f"short={short!r}; it is a number of characters, from 1")
    yield from assemble(
        path,
        TABLES,
        lambda row: _rows(_by_meaning(row, chosen, full), full, short, licence),
    )


def _by_meaning(row: Fields, columns: Mapping[str, str], full: float | None) -> Fields:
    if full is None and "full" not in columns and "full" not in row.values:
        raise Unusable(
            "missing: full",
            f"the row has {columns_of(row)}; give the option full, the number of full "
            "marks, or a column with it",
        )
    return renamed(row, columns, MEANINGS, needed=("problem", "answer", "score_1", "score_2"))


def _rows(row: Fields, full: float | None, short: int, licence: str) -> Iterator[Problem | Proof | Aside]:
    problem = Problem(
        source="Student",
        native_id=native_id(row),
        text=row.text("problem"),
        subject=row.optional("subject"),
        language=row.optional("language"),
        licence=licence,
    )
    yield problem
    most = row.number("full") if full is None else float(full)
    scores = [row.number("score_1"), row.number("score_2")]
    if most <= 0 or not all(0 <= one <= most for one in scores):
        raise Unusable("score", f"{scores[0]:g} and {scores[1]:g} of {most:g}")
    text = row.text("answer")
    if len(text) < short:
        raise Unusable("short answer", f"{len(text)} characters; fewer than {short}: {text}")
    yield Proof(
        problem_id=problem.id,
        source=problem.source,
        method=GROUND_TRUTH,
        text=text,
        known=scores[0] == scores[1] == most,
        known_by="human: full marks twice",
    )
