"""Decision rules: from the verdicts of K votes on a proof to one verdict, exactly, over all subsets of the votes.

With i votes True and j votes False among the K, and the rest without a verdict:

    majority       accepts if i > j, rejects if i < j; i = j > 0 is a coin
    pessimistic    accepts if j = 0 and i > 0: one rejection is a veto           (pessimistic verification, 2511.21522)
    at least m     accepts if i >= m. `at least 1` is the optimistic rule

Without any verdict (i = j = 0) a rule has none either, which is wrong for both classes. `count_missing_as_rejections`
makes a missing verdict a rejection instead of an abstention.

The votes of a verifier are a subset of its n votes on the pair, and all combinations of subsets have the same
probability, so the table of (i, j) of several verifiers is the convolution of theirs.

Example: votes TTF, k = 2. {TT} has (2, 0), {TF} twice (1, 1). Accepts: majority (1 + 2/2)/3, pessimistic 1/3,
at least 1 always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pv_eval.counts import Floats, VoteCounts
from pv_eval.subsets import subset_shares

__all__ = ["count_missing_as_rejections", "decide", "joint_table", "rules_of"]

ALL = 8
"""Up to so many votes there is a rule `at least m` for each m; beyond, for quarters of them."""


def rules_of(votes: int) -> dict[str, tuple[Floats, Floats]]:
    """By name, how often a rule accepts and rejects, (K + 1, K + 1) each, at i votes True and j votes False."""
    i, j = np.indices((votes + 1, votes + 1)).astype(float)
    if votes == 1:
        return {"single vote": (i, j)}
    coin = np.where((i == j) & (i > 0), 0.5, 0.0)
    some = i + j > 0
    rules = {
        "majority": ((i > j) + coin, (i < j) + coin),
        "pessimistic": ((j == 0) & some, j > 0),
    }
    quarters = {1, *(round(votes * part / 4) for part in (1, 2, 3)), votes}
    for m in range(1, votes + 1) if votes <= ALL else sorted(quarters):
        rules[f"at least {m}"] = (i >= m, (i < m) & some)
    return {name: (accept.astype(float), reject.astype(float)) for name, (accept, reject) in rules.items()}


def count_missing_as_rejections(counts: VoteCounts) -> VoteCounts:
    """Counts in which a vote without a verdict rejects."""
    return replace(counts, rejected=counts.rejected + counts.missing, missing=counts.missing * 0)


def joint_table(verifiers: Sequence[VoteCounts], each: Sequence[int]) -> Floats:
    """(P, K + 1, K + 1) probability of i votes True and j votes False among K votes on each pair.

    Args:
        verifiers: with the same pairs in the same order.
        each: votes of each verifier, from 1 to the fewest that it has on a pair; K is their sum.
    """
    table = _own_table(verifiers[0], each[0])
    for counts, k in zip(verifiers[1:], each[1:], strict=True):
        table = _convolve(table, _own_table(counts, k))
    return table


def _own_table(counts: VoteCounts, k: int) -> Floats:
    rows = zip(counts.accepted.tolist(), counts.rejected.tolist(), counts.missing.tolist(), strict=True)
    return np.stack([subset_shares(*row, k) for row in rows])


def _convolve(first: Floats, second: Floats) -> Floats:
    one, two = first.shape[1], second.shape[1]
    table = np.zeros((len(first), one + two - 1, one + two - 1))
    for i, j in np.argwhere(second.any(axis=0)):
        table[:, i : i + one, j : j + one] += first * second[:, i, j, None, None]
    return table


def decide(table: Floats) -> Mapping[str, tuple[Floats, Floats, Floats]]:
    """By rule, how often each pair is accepted, rejected and without a verdict: (P,) each."""
    flat = table.reshape(len(table), -1)
    none = table[:, 0, 0]
    return {
        name: (flat @ accept.ravel(), flat @ reject.ravel(), none)
        for name, (accept, reject) in rules_of(table.shape[1] - 1).items()
    }
