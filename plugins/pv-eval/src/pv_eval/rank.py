"""Rank correlations with ties, Spearman and Kendall tau-b, of weighted tables, with each question left out.

For a table of N weights n_ij, the rows x values ascending, the columns y values ascending:

    Spearman   Pearson's correlation of midranks, r_i = n_1. + ... + n_(i-1). + n_i. / 2
    tau-b      (C - D) / sqrt(T_x T_y)      C, D: weight of concordant and of discordant couples; T_x, T_y: of couples
                                            that are not tied in x, in y

With weights 1 they equal `scipy.stats.spearmanr` and `kendalltau`, which take one sample at a time.

Example: x = 0, 3, 7, 7 and y = 1, 2, 2, 5. Of 6 couples 4 are concordant, none discordant; 5 are not tied in x, 5 not
in y: tau-b = 4/5 = 0.8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from pv_eval.counts import Columns, Floats, Statistic, Sums
from pv_eval.ties import join_ties

__all__ = ["kendall", "rank_sums", "spearman"]

BLOCK = 4_000_000
"""Numbers in a block of tables, 32 MB."""
Measure: TypeAlias = Callable[[Floats], Floats]
"""(..., X, Y) tables to (...) values, NaN where x or y has one value only."""


def spearman(tables: Floats) -> Floats:
    """Of (..., X, Y) tables."""
    x, y = tables.sum(axis=-1), tables.sum(axis=-2)
    half = x.sum(axis=-1, keepdims=True) / 2
    from_x, from_y = (np.cumsum(one, axis=-1) - one / 2 - half for one in (x, y))
    together = np.einsum("...xy,...x,...y->...", tables, from_x, from_y, optimize=True)
    return _quotient(together, (x * from_x**2).sum(axis=-1), (y * from_y**2).sum(axis=-1))


def kendall(tables: Floats) -> Floats:
    """Tau-b of (..., X, Y) tables."""
    x, y = tables.sum(axis=-1), tables.sum(axis=-2)
    lower_x = np.cumsum(tables, axis=-2) - tables
    through = np.cumsum(lower_x, axis=-1)
    signed = through - lower_x - (through[..., -1:] - through)
    total = x.sum(axis=-1) ** 2
    untied = (total - (one**2).sum(axis=-1) for one in (x, y))
    return _quotient(2 * (tables * signed).sum(axis=(-2, -1)), *untied)


def _quotient(above: Floats, x: Floats, y: Floats) -> Floats:
    """`above / sqrt(x y)`; what is left of a difference of large sums is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((x > 1e-9) & (y > 1e-9), above / np.sqrt(x * y), np.nan)


def rank_sums(
    question: Floats, weight: Floats, x: Floats, y: Floats, number: int
) -> tuple[Sums, Callable[[Measure], Statistic], Callable[[Measure], Floats]]:
    """Sums over questions whose statistics are rank correlations.

    Args:
        question: (N,) index of each item's question.
        weight: (N,)
        x: (N,) and `y` (N,): the values; ties are those of `ties`.
        number: Q, of questions.

    Returns:
        The sums, a column for each different couple of values; what makes a statistic of a measure; and what gives the
        (Q,) values of a measure within each question.
    """
    xs, x_place = np.unique(join_ties(x), return_inverse=True)
    ys, y_place = np.unique(join_ties(y), return_inverse=True)
    shape = (len(xs), len(ys))
    cells, cell = np.unique(x_place * len(ys) + y_place, return_inverse=True)
    table = np.zeros((number, len(cells)))
    np.add.at(table, (question, cell), weight)

    def measured(measure: Measure, weights: Floats) -> Floats:
        """(R, C) weights of the cells to (R,) values."""
        at_once = max(1, BLOCK // (shape[0] * shape[1]))
        parts = []
        for start in range(0, len(weights), at_once):
            part = weights[start : start + at_once]
            grid = np.zeros((len(part), shape[0] * shape[1]))
            grid[:, cells] = part
            parts.append(measure(grid.reshape(-1, *shape)))
        return np.concatenate(parts)

    def statistic(measure: Measure) -> Statistic:
        def of(sums: Columns) -> Floats:
            weights = np.stack([sums[name] for name in sums], axis=-1)
            found = measured(measure, weights.reshape(-1, len(cells)))
            return found.reshape(weights.shape[:-1])

        return of

    sums = Sums(names=tuple(str(one) for one in range(len(cells))), table=table)
    return sums, statistic, lambda measure: measured(measure, table)
