"""Votes as arrays: how often each pair was accepted, rejected, or given no verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from pv_eval.checks import Checked
from pv_eval.votes import Pair, Vote

__all__ = ["Floats", "VoteCounts", "count_votes"]

Floats: TypeAlias = "np.ndarray[Any, Any]"
Ints: TypeAlias = "np.ndarray[Any, Any]"
Bools: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, kw_only=True)
class VoteCounts:
    """P pairs of Q questions, V votes in all; rows are in the order of `Checked.pairs` and `Checked.votes`."""

    pairs: tuple[Pair, ...]
    """(P,)"""
    votes: tuple[Vote, ...]
    """(V,)"""
    questions: tuple[str, ...]
    """(Q,) names."""
    question: Ints
    """(P,) number of the pair's question."""
    label: Bools
    """(P,)"""
    weight: Floats
    """(P,)"""
    accepted: Ints
    """(P,) votes True."""
    rejected: Ints
    """(P,) votes False."""
    missing: Ints
    """(P,) votes without a verdict."""
    pair_of_vote: Ints
    """(V,) number of the vote's pair."""

    @property
    def samples(self) -> Ints:
        """(P,) n, votes on each pair, with or without a verdict."""
        return self.accepted + self.rejected + self.missing

    @cached_property
    def right(self) -> Floats:
        """(P,) share of a pair's n votes that are its label; one without a verdict is not."""
        return np.where(self.label, self.accepted, self.rejected) / self.samples

    def part(self, keep: Sequence[bool] | Bools) -> VoteCounts:
        """Of some pairs only; `keep` is (P,)."""
        pairs = tuple(pair for pair, kept in zip(self.pairs, keep, strict=True) if kept)
        names = {pair.pair_id for pair in pairs}
        votes = tuple(vote for vote in self.votes if vote.pair_id in names)
        return _count(pairs, votes)

    def in_order_of(self, other: VoteCounts) -> VoteCounts:
        """With the pairs in the order of `other`, which has the same."""
        place = {pair.pair_id: number for number, pair in enumerate(other.pairs)}
        pairs = tuple(sorted(self.pairs, key=lambda pair: place[pair.pair_id]))
        return _count(pairs, self.votes)


def count_votes(checked: Checked) -> VoteCounts:
    """Count.

    Raises:
        DataError: the set is refused, see `check`.
    """
    checked.refuse()
    return _count(checked.pairs, checked.votes)


def _count(pairs: tuple[Pair, ...], votes: tuple[Vote, ...]) -> VoteCounts:
    place = {pair.pair_id: number for number, pair in enumerate(pairs)}
    questions = {
        name: number for number, name in enumerate(dict.fromkeys(pair.question_id for pair in pairs))
    }
    pair_of_vote = np.array([place[vote.pair_id] for vote in votes], dtype=np.int64)

    def tally(verdict: bool | None) -> Ints:
        these = np.array([vote.verdict is verdict for vote in votes], dtype=bool)
        return np.bincount(pair_of_vote[these], minlength=len(pairs)).astype(np.int64)

    return VoteCounts(
        pairs=pairs,
        votes=votes,
        questions=tuple(questions),
        question=np.array([questions[pair.question_id] for pair in pairs], dtype=np.int64),
        label=np.array([pair.label is True for pair in pairs], dtype=bool),
        weight=np.array([pair.weight for pair in pairs], dtype=float),
        accepted=tally(True),
        rejected=tally(False),
        missing=tally(None),
        pair_of_vote=pair_of_vote,
    )
