"""The central input: pairs of a question and a proof, and a verifier's votes on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pv_rl.errors import DataError

__all__ = ["Pair", "Vote"]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A question, a proof of it, and whether the proof is right."""

    pair_id: str
    """Name of the pair, unique in a set."""
    question_id: str
    """Name of the question: what intervals draw, and what best-of-k chooses within."""
    label: bool | None
    """The truth: True where the proof is right. None: nobody has said; `check` sets such a pair aside."""
    slice: str = ""
    """Part of the set that has a line of its own: source, style or kind of error."""
    question: str = ""
    proof: str = ""
    weight: float = 1.0
    """What the pair counts in every mean, 0 or more."""

    def __post_init__(self) -> None:
        _names(self, "pair_id", "question_id")
        _texts(self, "slice", "question", "proof")
        _flag(self, "label")
        _number(self, "weight", low=0.0)


@dataclass(frozen=True, kw_only=True)
class Vote:
    """One sampled trace of the verifier on a pair."""

    pair_id: str
    question_id: str
    sample: int
    """Number of the sample, 0 to n - 1."""
    verdict: bool | None
    """True: the proof is accepted. None: the trace ends in no verdict, or the request failed for good."""
    length: float | None = None
    """Of the trace, 0 or more, in the unit that the run names: tokens or characters. None: not known."""
    trace: str | None = None
    """The text, where it was kept."""
    logit: float | None = None
    """log p(True) - log p(False) of the verdict token, finite, where the sampler gives it."""

    def __post_init__(self) -> None:
        _names(self, "pair_id", "question_id")
        _flag(self, "verdict")
        if type(self.sample) is not int or self.sample < 0:
            raise DataError(_said(self, "sample", "a whole number, 0 or more"))
        if self.trace is not None:
            _texts(self, "trace")
        if self.length is not None:
            _number(self, "length", low=0.0)
        if self.logit is not None:
            _number(self, "logit", low=-math.inf)


def _names(one: Pair | Vote, *fields: str) -> None:
    for field in fields:
        value = getattr(one, field)
        if not isinstance(value, str) or not value.strip():
            raise DataError(_said(one, field, "a text that is not blank"))


def _texts(one: Pair | Vote, *fields: str) -> None:
    for field in fields:
        if not isinstance(getattr(one, field), str):
            raise DataError(_said(one, field, "a text"))


def _flag(one: Pair | Vote, field: str) -> None:
    if not isinstance(getattr(one, field), bool | None):
        raise DataError(_said(one, field, "True, False or None, and no number or word for it"))


def _number(one: Pair | Vote, field: str, *, low: float) -> None:
    value = getattr(one, field)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < low:
        raise DataError(_said(one, field, "a finite number" + (", 0 or more" if low == 0 else "")))


def _said(one: Pair | Vote, field: str, allowed: str) -> str:
    kind = type(one).__name__.lower()
    return f"the {kind} of {str(one.pair_id)[:80]!r} has {field}={getattr(one, field)!r:.80}; it is {allowed}"
