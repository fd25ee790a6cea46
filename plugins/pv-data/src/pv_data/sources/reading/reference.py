"""Proofs that came with their problem."""

from __future__ import annotations

from pv_data.records import GROUND_TRUTH, Problem, Proof

__all__ = ["REFERENCE", "reference"]

REFERENCE = "reference solution"


def reference(problem: Problem, text: str) -> Proof:
    """A source's own proof, which is taken to be right."""
    return Proof(
        problem_id=problem.id,
        source=problem.source,
        method=GROUND_TRUTH,
        text=text,
        known=True,
        known_by=REFERENCE,
    )
