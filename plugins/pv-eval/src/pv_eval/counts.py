"""Vote counts: how often each pair was accepted, rejected or left without a verdict, and their sums by question.

Every metric is a function of sums over questions. A column of `Sums` holds, for each question, the sum of something
over its pairs, so leaving a question out subtracts a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from pv_eval.checks import Checked
from pv_eval.votes import Pair, Vote

__all__ = [
    "Columns",
    "Floats",
    "Statistic",
    "Sums",
    "VoteCounts",
    "count_votes",
    "quotient",
    "ratio",
    "sum_by_question",
]

Array: TypeAlias = "np.ndarray[Any, Any]"
Floats: TypeAlias = "np.ndarray[Any, Any]"
Columns: TypeAlias = Mapping[str, Floats]
"""By name, the sums over some set of questions: each of the same shape, () or (R,) for R sets."""
Statistic: TypeAlias = Callable[[Columns], Floats]
"""From sums to a number for each set of questions; NaN where it is undefined."""


@dataclass(frozen=True, kw_only=True)
class VoteCounts:
    """P pairs of Q questions, V votes in all; rows are in the order of `Checked.pairs` and `Checked.votes`."""

    pairs: tuple[Pair, ...]
    """(P,)"""
    votes: tuple[Vote, ...]
    """(V,)"""
    questions: tuple[str, ...]
    """(Q,) ids."""
    question: Array
    """(P,) index of the pair's question."""
    label: Array
    """(P,) bool."""
    weight: Floats
    """(P,)"""
    accepted: Array
    """(P,) votes True."""
    rejected: Array
    """(P,) votes False."""
    missing: Array
    """(P,) votes without a verdict."""
    pair_of_vote: Array
    """(V,) index of the vote's pair."""

    @property
    def samples(self) -> Array:
        """(P,) n, votes on each pair, with or without a verdict."""
        return self.accepted + self.rejected + self.missing

    @cached_property
    def right(self) -> Floats:
        """(P,) share of a pair's n votes that equal its label; a missing verdict does not."""
        return np.where(self.label, self.accepted, self.rejected) / self.samples

    def part(self, keep: Sequence[bool] | Array) -> VoteCounts:
        """The counts of some pairs; `keep` is (P,)."""
        pairs = tuple(pair for pair, kept in zip(self.pairs, keep, strict=True) if kept)
        names = {pair.pair_id for pair in pairs}
        return _count(pairs, tuple(vote for vote in self.votes if vote.pair_id in names))

    def in_order_of(self, other: VoteCounts) -> VoteCounts:
        """With the pairs in the order of `other`, which has the same."""
        place = {pair.pair_id: number for number, pair in enumerate(other.pairs)}
        return _count(tuple(sorted(self.pairs, key=lambda pair: place[pair.pair_id])), self.votes)


def count_votes(checked: Checked) -> VoteCounts:
    """Count the votes.

    Raises:
        DataError: the set is refused, see `check`.
    """
    checked.refuse()
    return _count(checked.pairs, checked.votes)


def _count(pairs: tuple[Pair, ...], votes: tuple[Vote, ...]) -> VoteCounts:
    place = {pair.pair_id: number for number, pair in enumerate(pairs)}
    names = dict.fromkeys(pair.question_id for pair in pairs)
    questions = {name: number for number, name in enumerate(names)}
    pair_of_vote = np.array([place[vote.pair_id] for vote in votes], dtype=np.int64)

    def number_of(verdict: bool | None) -> Array:
        these = np.array([vote.verdict is verdict for vote in votes], dtype=bool)
        return np.bincount(pair_of_vote[these], minlength=len(pairs)).astype(np.int64)

    return VoteCounts(
        pairs=pairs,
        votes=votes,
        questions=tuple(questions),
        question=np.array([questions[pair.question_id] for pair in pairs], dtype=np.int64),
        label=np.array([pair.label is True for pair in pairs], dtype=bool),
        weight=np.array([pair.weight for pair in pairs], dtype=float),
        accepted=number_of(True),
        rejected=number_of(False),
        missing=number_of(None),
        pair_of_vote=pair_of_vote,
    )


@dataclass(frozen=True, kw_only=True)
class Sums:
    """S columns of Q questions."""

    names: tuple[str, ...]
    """(S,)"""
    table: Floats
    """(Q, S)"""

    @property
    def total(self) -> dict[str, Floats]:
        """Over all questions."""
        return self.columns(self.table.sum(axis=0))

    def columns(self, sums: Floats) -> dict[str, Floats]:
        """(..., S) as columns by name."""
        return {name: sums[..., number] for number, name in enumerate(self.names)}

    def beside(self, other: Sums, prefix: str) -> Sums:
        """With the columns of `other` added under `prefix` + their names; both have the same questions."""
        names = (*self.names, *(prefix + name for name in other.names))
        return Sums(names=names, table=np.hstack([self.table, other.table]))


def sum_by_question(counts: VoteCounts, by_pair: Mapping[str, Floats]) -> Sums:
    """Add up values of pairs, each times the pair's weight.

    Args:
        counts: of P pairs.
        by_pair: (P,) values by the column's name.
    """
    number = len(counts.questions)
    columns = [
        np.bincount(counts.question, weights=values * counts.weight, minlength=number)
        for values in by_pair.values()
    ]
    return Sums(names=tuple(by_pair), table=np.column_stack(columns))


def ratio(above: Floats, below: Floats) -> Floats:
    """`above / below`, NaN where `below` is 0: a class that is absent has no accuracy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(below) > 0, np.divide(above, below), np.nan)


def quotient(above: str, below: str) -> Statistic:
    """The statistic `sum of column above / sum of column below`."""
    return lambda s: ratio(s[above], s[below])
