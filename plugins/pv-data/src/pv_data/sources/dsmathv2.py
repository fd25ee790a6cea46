"""Source `dsmathv2`: DeepSeekMath-V2's proofs of competition problems, with people's points.

Shao et al., 2025, https://github.com/deepseek-ai/DeepSeek-Math-V2 (outputs), Apache-2.0. `human_rating` is of
`max_rating` points, which for some sets are those of several problems together. `average_automatic_rating`, the model's
own mark, has no place in a `Proof` and is left out. The published files do not have `max_rating`: there it is that of
the competition.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pv_data.hookspecs import Read
from pv_data.records import Aside, MarkedProof, Problem, Proof
from pv_data.sources.reading.assemble import assemble, attempt, reference
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.rows import TABLES
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["read"]

MODEL = "DeepSeek-Math-V2"
FULL = {"CMO": 21, "IMO": 7, "PB-": 7, "Put": 10}
"""Points of a problem, by the beginning of its `problem_idx`."""


def read(path: Path, *, positive: Literal["max"] | float = "max", negative: float | None = None) -> Read:
    """Problems, reference solutions, and proofs that are right by the rule.

    Args:
        positive: `max`, all points; or the part of them, above 0 to 1, from which on a proof is right.
        negative: the part up to which it is wrong, with no label in between; None: wrong wherever it is not right.
    """
    part = 1.0 if positive == "max" else positive
    if (
        not _is_part(part)
        or part == 0
        or (negative is not None and not (_is_part(negative) and negative < part))
    ):
        raise ConfigError(
            f"positive={positive!r}, negative={negative!r}; positive is max or a part above 0 to 1, "
            "negative a smaller part or null"
        )
    yield from assemble(path, TABLES, lambda row: _rows(row, part, negative))


def _rows(row: Fields, positive: float, negative: float | None) -> Iterator[Problem | Proof | Aside]:
    if "model_prediction" in row.values:
        row = _from_published(row)
    name = f"{row.text('set')}/{row.name('problem_idx')}"
    problem = Problem(
        source="DeepSeekMath-V2",
        native_id=name,
        text=row.text("problem"),
        subject=row.optional("type"),
        licence="Apache-2.0",
        url=f"deepseek-ai/DeepSeek-Math-V2 {name}",
    )
    yield problem
    if row.values.get("reference_solution") is not None:
        yield attempt(
            f"{row.where}:reference_solution", lambda: reference(problem, row.text("reference_solution"))
        )
    points, most = row.number("human_rating"), row.number("max_rating")
    if not 0 <= points <= most or most == 0:
        raise Unusable("no label: human_rating", f"{points:g} of {most:g} points")
    known = True if points >= positive * most else None
    if known is None and (negative is None or points <= negative * most):
        known = False
    yield MarkedProof(
        problem_id=problem.id,
        source=problem.source,
        method="proof",
        model=MODEL,
        text=row.text("proof"),
        known=known,
        known_by="" if known is None else _rule(positive, most),
        grade=points / most,
    )


def _from_published(row: Fields) -> Fields:
    made, index = row.inner("model_prediction"), row.text("problem_idx")
    values = {
        "set": row.where.partition(".json")[0],  # the file is called after it
        "problem_idx": index,
        "problem": row.values.get("question"),
        "reference_solution": row.values.get("solution"),
        "type": row.values.get("type"),
        "proof": made.values.get("proof"),
        "human_rating": made.values.get("human_rating"),
        "max_rating": row.values.get("max_rating", FULL.get(index[:3])),
    }
    return Fields(where=row.where, values=values)


def _rule(positive: float, most: float) -> str:
    return (
        f"human: {most:g} of {most:g}" if positive == 1 else f"human: {positive * most:g} or more of {most:g}"
    )


def _is_part(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
