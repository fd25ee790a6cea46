"""Rank correlations with ties, Spearman and Kendall tau-b, of weighted items, with each question left out.

For a table of N weights n_ij, the rows x values ascending, the columns y values ascending:

    Spearman   Pearson's correlation of midranks, r_i = n_1. + ... + n_(i-1). + n_i. / 2
    tau-b      (C - D) / sqrt(T_x T_y)      C, D: weight of concordant and of discordant couples; T_x, T_y: of couples
                                            that are not tied in x, in y

With weights 1 they equal `scipy.stats.spearmanr` and `kendalltau`, which take one sample at a time.

Without a question, C - D, T_x and T_y are less twice the couples that have an item of the question, plus the couples
inside of it, which would be taken off twice. Its margins are subtracted from those of the table for the midranks.

Example: x = 0, 3, 7, 7 and y = 1, 2, 2, 5. Of 6 couples 4 are concordant, none discordant; 5 are not tied in x, 5 not
in y: tau-b = 4/5 = 0.8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pv_eval.counts import Floats
from pv_eval.ties import join_ties

__all__ = ["Ranks", "rank_correlations"]

BLOCK = 4_000_000
"""Numbers in a block of questions, 32 MB."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Correlations; NaN where x or y has one value only."""

    spearman: float
    kendall: float
    spearman_without: Floats
    """(Q,) without each question."""
    kendall_without: Floats
    """(Q,)"""
    kendall_within: Floats
    """(Q,) of the items of each question."""


def rank_correlations(question: Floats, weight: Floats, x: Floats, y: Floats, number: int) -> Ranks:
    """Spearman and tau-b.

    Args:
        question: (N,) index of each item's question.
        weight: (N,)
        x: (N,) and `y` (N,): the values; ties are those of `ties`.
        number: Q, of questions.
    """
    weight = weight / (weight.sum() or 1.0)
    xs, x = np.unique(join_ties(x), return_inverse=True)
    ys, y = np.unique(join_ties(y), return_inverse=True)
    table = np.zeros((len(xs), len(ys)))
    np.add.at(table, (x, y), weight)

    signed = _of_lower(table) + _of_lower(table[::-1, ::-1])[::-1, ::-1]
    couples = signed[x, y], 1 - table.sum(axis=1)[x], 1 - table.sum(axis=0)[y]
    of = np.stack([np.bincount(question, weights=weight * one, minlength=number) for one in couples])
    whole, inside = of.sum(axis=1, keepdims=True), _inside(question, weight, x, y, number)
    share = np.bincount(question, weights=weight, minlength=number)

    at_once = max(1, BLOCK // sum(table.shape))
    blocks = [np.arange(start, min(start + at_once, number)) for start in range(0, number, at_once)]
    without = [_spearman(table, question, weight, x, y, block) for block in blocks]
    return Ranks(
        spearman=float(_spearman(table, question, weight, x, y, np.array([number]))[0]),
        kendall=float(_quotient(*whole, 1.0)[0]),
        spearman_without=np.concatenate(without),
        kendall_without=_quotient(*(whole - 2 * of + inside), 1 - share),
        kendall_within=_quotient(*inside, share),
    )


def _of_lower(table: Floats) -> Floats:
    """(X, Y) of the items with a lower x, the weight of those with a lower y less that of those with a higher one."""
    lower = np.cumsum(table, axis=0) - table
    through = np.cumsum(lower, axis=1)
    return 2 * through - lower - through[:, -1:]


def _inside(question: Floats, weight: Floats, x: Floats, y: Floats, number: int) -> Floats:
    """(3, Q) C - D, T_x and T_y of the ordered couples of items of the same question."""
    order = np.argsort(question, kind="stable")
    question, weight, x, y = question[order], weight[order], x[order], y[order]
    found = np.zeros((3, number))
    for gap in range(1, int(np.bincount(question).max())):
        one = np.flatnonzero(question[gap:] == question[:-gap])
        of_x, of_y = (np.sign(value[one + gap] - value[one]) for value in (x, y))
        both = 2 * weight[one] * weight[one + gap]
        for sums, what in zip(found, (of_x * of_y, np.abs(of_x), np.abs(of_y)), strict=True):
            sums += np.bincount(question[one], weights=both * what, minlength=number)
    return found


def _spearman(
    table: Floats, question: Floats, weight: Floats, x: Floats, y: Floats, without: Floats
) -> Floats:
    """(B,) without each of the (B,) questions, which follow each other."""
    here = np.flatnonzero((question >= without[0]) & (question <= without[-1]))
    place, own, x, y = question[here] - without[0], weight[here], x[here], y[here]
    squares, ranks = [], []
    for axis, values in ((1, x), (0, y)):
        margin = np.repeat(table.sum(axis=axis)[None], len(without), axis=0)
        np.subtract.at(margin, (place, values), own)
        rank = np.cumsum(margin, axis=1) - margin / 2 - margin.sum(axis=1, keepdims=True) / 2
        squares.append((margin * rank**2).sum(axis=1))
        ranks.append(rank)
    together = ((ranks[0] @ table) * ranks[1]).sum(axis=1)
    taken = own * ranks[0][place, x] * ranks[1][place, y]
    share = 1 - np.bincount(place, weights=own, minlength=len(without))
    share = np.where(share > 0, share, np.nan)  # without the only question nothing is left, up to rounding
    return _quotient(
        together - np.bincount(place, weights=taken, minlength=len(without)), *squares, share**1.5
    )


def _quotient(above: Floats, x: Floats, y: Floats, size: Floats | float) -> Floats:
    """`above / sqrt(x y)`; what is left of a difference of sums, which are of the order of `size`^2, is 0."""
    least = 1e-9 * np.square(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.clip(above / np.sqrt(x * y), -1, 1)
        return np.where((x > least) & (y > least), found, np.nan)
