"""Source `gsm8k_solutions`: solutions of GSM8K by four generators, known by the final answer.

Cobbe et al., 2021, https://github.com/openai/grade-school-math (example_model_solutions), MIT. A right final answer is
no proof that the steps are right: the label is a good guess, and `known_by` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pv_data.hookspecs import Read
from pv_data.records import Aside, Problem, Proof
from pv_data.sources.reading.assemble import assemble, attempt, reference
from pv_data.sources.reading.fields import Fields
from pv_data.sources.reading.rows import TABLES
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["GENERATORS", "read"]

GENERATORS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
ANNOTATION = re.compile(r"<<[^<>\n]*>>")
"""`<<2/2=1>>`: what the model told its calculator."""
FINAL = re.compile(r"(?:A:|####)\s*(\S.*)")


def read(path: Path, *, annotations: Literal["remove", "keep"] = "remove") -> Read:
    """Questions, the reference solution, and the solutions of the four generators.

    Args:
        annotations: whether the calculator's annotations go; they are no part of the solution for a reader, and give
            the source away.
    """
    if annotations not in ("remove", "keep"):
        raise ConfigError(f"annotations={annotations!r}; it is remove or keep")
    yield from assemble(path, TABLES, lambda row: _rows(row, annotations == "remove"))


def _rows(row: Fields, remove: bool) -> Iterator[Problem | Proof | Aside]:
    solved = row.text("ground_truth")
    final = FINAL.fullmatch(solved.splitlines()[-1].strip())
    problem = Problem(
        source="GSM8K",
        native_id=row.where,
        text=row.text("question"),
        answer=final[1] if final else "",
        language="en",
        licence="MIT",
        url=f"openai/grade-school-math {row.where}",
    )
    yield problem
    yield attempt(f"{row.where}:ground_truth", lambda: reference(problem, _plain(solved, remove)))
    for name in GENERATORS:
        yield attempt(f"{row.where}:{name}", lambda name=name: _proof(row, problem, name, remove))


def _proof(row: Fields, problem: Problem, name: str, remove: bool) -> Proof:
    inner = row.inner(name)
    return Proof(
        problem_id=problem.id,
        source=problem.source,
        method="solution",
        model=name,
        text=_plain(inner.text("solution"), remove),
        known=inner.flag("is_correct"),
        known_by="final answer",
    )


def _plain(text: str, remove: bool) -> str:
    plain = ANNOTATION.sub("", text).strip() if remove else text
    if not plain:
        raise Unusable("empty: solution", "nothing but annotations")
    return plain
