"""Generation method: from a problem, and a proof of it where the method needs one, to the text of a new proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pv_data.records import Problem, Proof
from pv_judge.answer import Messages

__all__ = ["MAX_CHARACTERS", "Ask", "Given", "Made", "Method", "Unfit", "question", "question_and_proof"]


class Unfit(Exception):
    """This input, or this answer, is none for the method: the row is set aside with the reason.

    `Unfit("no reference proof", "mask_completion masks steps of a proof")`.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        """One word or two, for counting."""
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a method is given."""

    problem: Problem
    proof: Proof | None
    """None for a method that needs none."""
    sample: int
    """0, 1, ...: which of several proofs of the same input is wanted."""
    seed: int
    """Of the run and the input: for random choices, which must be the same when a run goes on."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A model has to be asked."""

    messages: Messages
    read: Callable[[str], str]
    """From the model's answer to the proof's text; raises `Unfit` for an answer that holds none."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """The proof was made here, without a model."""

    text: str
    known: bool | None = None
    """Whether it is right, where that follows from how it was made."""
    known_by: str = ""


class Method(Protocol):
    """A generation method."""

    @property
    def needs_proof(self) -> bool:
        """Whether it works on a proof (QP) or on the question alone (Q)."""
        ...

    @property
    def template(self) -> str:
        """Name and hash of its prompt, part of the cache's key and of every row; empty where it asks no model."""
        ...

    def prepare(self, given: Given) -> Ask | Made:
        """What to do for this input; raises `Unfit`. Deterministic in `given`."""
        ...


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
