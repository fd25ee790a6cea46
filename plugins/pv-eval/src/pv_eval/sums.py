"""Every number here is a function of sums over questions, so that one product of matrices resamples all of them.

A column holds, for each question, the sum of something over its pairs. Drawing questions with replacement is to weigh
the rows of (Q, S); leaving one out is to subtract a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from pv_eval.counts import Floats, VoteCounts

__all__ = ["Columns", "Statistic", "Sums", "ratio", "sum_by_question"]

Columns: TypeAlias = Mapping[str, Floats]
"""By name, the sums over some set of questions: each of the same shape, () or (R,) for R sets."""
Statistic: TypeAlias = Callable[[Columns], Floats]
"""From sums to a number for each set of questions; NaN where it is not defined."""


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
    table = np.zeros((len(counts.questions), len(by_pair)))
    for number, values in enumerate(by_pair.values()):
        table[:, number] = np.bincount(
            counts.question, weights=values * counts.weight, minlength=len(counts.questions)
        )
    return Sums(names=tuple(by_pair), table=table)


def ratio(above: Floats, below: Floats) -> Floats:
    """`above / below`, NaN where nothing is below: a class that is absent has no accuracy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(below) > 0, np.divide(above, below), np.nan)
