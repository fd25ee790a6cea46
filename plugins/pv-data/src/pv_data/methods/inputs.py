"""What a method may be given: a question, or a question with a proof. Whatever is not that is `Unfit`."""

from __future__ import annotations

from pv_data.methods.base import Given, Unfit

__all__ = ["MAX_CHARACTERS", "question", "question_and_proof"]

MAX_CHARACTERS = 200_000
"""Of a text that is put before a model: longer ones are no proofs of one problem, and fit into no context."""
MIN_LETTERS = 3


def question(given: Given) -> str:
    """The problem's text (Q)."""
    return _text(given.problem.text, "problem")


def question_and_proof(given: Given) -> tuple[str, str]:
    """The texts of problem and proof (QP)."""
    problem = question(given)
    if given.proof is None:
        raise Unfit("no proof", "the method works on a proof of the problem")
    if given.proof.problem_id != given.problem.id:
        raise Unfit("other problem", f"the proof is one of problem {given.proof.problem_id}")
    return problem, _text(given.proof.text, "proof")


def _text(text: str, what: str) -> str:
    if sum(character.isalnum() for character in text[:1000]) < MIN_LETTERS:
        raise Unfit(f"empty {what}", f"the {what} has no text")
    if len(text) > MAX_CHARACTERS:
        raise Unfit(f"{what} too long", f"{len(text)} characters; at most {MAX_CHARACTERS}")
    return text
