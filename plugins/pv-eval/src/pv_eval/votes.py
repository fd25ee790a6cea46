"""Pairs of a question and a proof, a verifier's votes on them, and the scorer that reads a vote from a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pv_rl.errors import DataError
from pv_rl.verdict import parse_verdict
from pv_verdicts import VerdictFormat, build_format

__all__ = ["Pair", "Vote", "read_vote", "score_verdict"]

Rule: TypeAlias = "tuple[str, Callable[[object], bool]]"
"""What is allowed, in words and as a check."""

LARGEST = sys.float_info.max


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


NAME: Rule = ("a text that is not blank", lambda value: isinstance(value, str) and bool(value.strip()))
TEXT: Rule = ("a text", lambda value: isinstance(value, str))
TEXTS: Rule = (
    "a list of texts",
    lambda value: isinstance(value, tuple | list) and all(isinstance(one, str) for one in value),
)
FLAG: Rule = ("True, False or None; numbers and words are refused", lambda v: isinstance(v, bool | None))
NUMBER: Rule = ("a finite number", _finite)
AMOUNT: Rule = ("a finite number, 0 or more", lambda value: _finite(value) and value >= 0)  # pyright: ignore[reportOperatorIssue]
WEIGHT: Rule = ("a number from 0 to 1e50", lambda value: _finite(value) and 0 <= value <= 1e50)  # pyright: ignore[reportOperatorIssue]
SHARE: Rule = ("a number from 0 to 1", lambda value: _finite(value) and 0 <= value <= 1)  # pyright: ignore[reportOperatorIssue]
INDEX: Rule = ("a whole number from 0 to 2^63 - 1", lambda value: type(value) is int and 0 <= value < 2**63)


def _or_none(rule: Rule) -> Rule:
    allowed, holds = rule
    return allowed, lambda value: value is None or holds(value)


GIVEN = {"grade": _or_none(SHARE), "first_error": _or_none(INDEX)}
PAIR: Mapping[str, Rule] = {
    **dict.fromkeys(("pair_id", "question_id"), NAME),
    **dict.fromkeys(("slice", "question", "proof", "reference", "rubric"), TEXT),
    **{"label": FLAG, "weight": WEIGHT, "steps": TEXTS, **GIVEN},
}
VOTE: Mapping[str, Rule] = {
    **{"pair_id": NAME, "question_id": NAME, "verdict": FLAG, "sample": INDEX, **GIVEN},
    **{"trace": _or_none(TEXT), "logit": _or_none(NUMBER)},
    **dict.fromkeys(("length", "usd"), _or_none(AMOUNT)),
}
"""Rules of a pair's and of a vote's fields. A run has 10^5 votes, so they are built once."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A question, a proof of it, and whether the proof is right."""

    pair_id: str
    """Unique in a set."""
    question_id: str
    """Intervals leave questions out, and best-of-k chooses among the proofs of one."""
    label: bool | None
    """The truth: True where the proof is right. None: unknown; `check` leaves such a pair out."""
    slice: str = ""
    """Part of the set with metrics of its own: source, style or kind of error."""
    question: str = ""
    proof: str = ""
    weight: float = 1.0
    """Weight of the pair in every mean, 0 to 1e50."""
    grade: float | None = None
    """The human's grade as a share of the full points, 0 to 1. None: the proof was not graded."""
    first_error: int | None = None
    """Number of the first wrong step, counted from 1; 0: no step is wrong. None: unknown."""
    steps: tuple[str, ...] = ()
    """The proof's steps, where it is published in steps."""
    reference: str = ""
    """A solution that is right, for prompts that show one."""
    rubric: str = ""
    """The marking scheme of the question, for prompts that show one."""

    def __post_init__(self) -> None:
        _check(self, PAIR)
        object.__setattr__(self, "steps", tuple(self.steps))


@dataclass(frozen=True, kw_only=True)
class Vote:
    """One sampled trace of the verifier on a pair."""

    pair_id: str
    question_id: str
    sample: int
    """Number of the sample, 0 to n - 1."""
    verdict: bool | None
    """True: the verifier accepts the proof. None: the trace has no verdict, or the request failed for good."""
    length: float | None = None
    """Of the trace, 0 or more, in the unit that the run names: tokens or characters. None: unknown."""
    trace: str | None = None
    """The text, where it was kept."""
    logit: float | None = None
    """log p(True) - log p(False) of the verdict token, finite, where the sampler gives it."""
    grade: float | None = None
    """The verifier's grade as a share of the full points, 0 to 1. None: the trace has none."""
    first_error: int | None = None
    """The step that the verifier names as the first wrong one, from 1; 0: it finds none. None: no answer."""
    usd: float | None = None
    """What its request cost. None: unknown, or no price is set."""

    def __post_init__(self) -> None:
        _check(self, VOTE)


def _check(one: Pair | Vote, rules: Mapping[str, Rule]) -> None:
    for name, (allowed, holds) in rules.items():
        value = getattr(one, name)
        if not holds(value):
            kind = type(one).__name__.lower()
            raise DataError(
                f"the {kind} of {str(one.pair_id)[:80]!r} has {name}={value!r:.80}; expected {allowed}"
            )


def score_verdict(trace: str, label: bool) -> dict[str, float]:
    """Metrics of one trace, as numbers that another evaluation harness can average.

    Keys: `acc`, 1 where the verdict is the label (a missing verdict is wrong); `accepted`, 1 where the trace ends in
    `### True`; `missing`, 1 where it ends in no verdict. `pv_rl.verdict.parse_verdict` reads the verdict.

    Example: `score_verdict("Step 2 is wrong.\\n### False", False)` is `{"acc": 1.0, "accepted": 0.0, "missing": 0.0}`.

    Raises:
        DataError: the trace is not a text or the label not a bool; the caller converts labels in words.
    """
    if not isinstance(trace, str) or not isinstance(label, bool):
        raise DataError(
            f"score_verdict takes a text and True or False; given {type(trace).__name__} and {label!r:.80}"
        )
    verdict = parse_verdict(trace)
    return {
        "acc": float(verdict is label),
        "accepted": float(verdict is True),
        "missing": float(verdict is None),
    }


def read_vote(
    *,
    pair_id: str,
    question_id: str,
    sample: int,
    trace: str,
    length: float | None = None,
    logit: float | None = None,
    keep_trace: bool = True,
    form: VerdictFormat | None = None,
) -> Vote:
    """The vote of a trace.

    Args:
        pair_id: see `Vote`, as for the others.
        length: in the run's unit; characters if not given.
        keep_trace: whether the vote keeps the text.
        form: reads the trace; by default `### True` or `### False` at its end.
    """
    answer = (form or build_format()).read(trace)
    return Vote(
        pair_id=pair_id,
        question_id=question_id,
        sample=sample,
        verdict=answer.accepts,
        grade=answer.grade,
        first_error=answer.first_error,
        length=len(trace) if length is None else length,
        trace=trace if keep_trace else None,
        logit=logit,
    )
