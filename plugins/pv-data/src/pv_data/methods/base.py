"""What a generation method is: from a problem, and a proof of it where it needs one, to the text of a new proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pv_data.records import Problem, Proof
from pv_judge.answer import Messages

__all__ = ["Ask", "Given", "Made", "Method", "Unfit"]


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
