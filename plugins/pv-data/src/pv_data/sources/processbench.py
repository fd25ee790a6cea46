"""Source `processbench`: solutions in steps, of which people marked the first wrong one.

Zheng et al., 2024, https://huggingface.co/datasets/Qwen/ProcessBench, Apache-2.0. `label` is the index of the first
wrong step, from 0, or -1: all are right. A right final answer after a wrong step does not make a solution right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pv_data.hookspecs import Read
from pv_data.records import Aside, MarkedProof, Problem, Proof
from pv_data.sources.reading.assemble import assemble
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.rows import TABLES
from pv_data.sources.reading.unusable import Unusable

__all__ = ["read"]


def read(path: Path) -> Read:
    """Problems and solutions, their steps joined by a blank line."""
    yield from assemble(path, TABLES, _rows)


def _rows(row: Fields) -> Iterator[Problem | Proof | Aside]:
    name = row.text("id")
    problem = Problem(
        source="ProcessBench",
        native_id=name,
        text=row.text("problem"),
        licence="Apache-2.0",
        url=f"QwenLM/ProcessBench {name}",
    )
    yield problem
    text, wrong = row.steps("steps"), row.whole("label")
    if not -1 <= wrong < len(row.items("steps")):
        raise Unusable("no label: label", f"label is {wrong} of {len(row.items('steps'))} steps")
    yield MarkedProof(
        problem_id=problem.id,
        source=problem.source,
        method="solution",
        model=row.text("generator"),
        text=text,
        known=wrong == -1,
        known_by="human: no wrong step",
        first_error=wrong + 1,
        steps=row.texts("steps"),
    )
