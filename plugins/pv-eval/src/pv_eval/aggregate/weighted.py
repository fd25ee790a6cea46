"""Weighted votes: of several verifiers by their accuracy on other questions, of one verifier by the logit of each vote.

    weighted    accepts if sum_v w_v (i_v - j_v) > 0,   w_v = log b_v / (1 - b_v)
    logit       accepts if the sum of the votes' logits is > 0

with i_v and j_v votes True and False of verifier v, and b_v its balanced accuracy over the votes that have a verdict.
A sum of 0 is a coin, and without any verdict (or logit) there is none. With independent votes and classes that are
equally hard, the weights w_v are right most often (Nitzan and Paroush 1982, doi:10.2307/2526438). A verifier at chance
has weight 0, and one below chance a negative weight.

b_v of a question is estimated on other questions: these are cut into five folds, and the weights of a fold come from
the other four. It is smoothed, (tp + 1) / (tp + fn + 2) for right proofs and likewise for wrong ones, so that it is
neither 0 nor 1.

Example: b = 0.9 and 0.6 have the weights 2.20 and 0.41: one vote of the first outweighs five of the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from pv_eval.counts import Floats, VoteCounts
from pv_eval.majority import EXACT
from pv_eval.metrics import class_sums
from pv_eval.subsets import subset_shares

__all__ = ["by_logit", "by_weight", "fold_of", "weights_of"]

FOLDS = 5
DRAWS = 2000
"""Subsets that are drawn where there are more than `EXACT`."""
LARGEST = 1e6
"""Of a logit, so that sums of the largest floats do not overflow."""
TINY = 1e-9
"""Sums nearer to 0 are ties: floats that should cancel differ in the last bits."""

Shares = tuple[Floats, Floats, Floats]


def fold_of(questions: int, seed: int) -> np.ndarray:
    """(Q,) the fold of each question, 0 to 4; folds differ by one question at most."""
    return np.random.default_rng(seed).permutation(questions) % min(FOLDS, questions)


def weights_of(verifiers: Sequence[VoteCounts], fold: np.ndarray) -> Floats:
    """(F, V) weights of each verifier for the questions of a fold, estimated on the questions of the others."""
    table = np.zeros((int(fold.max()) + 1, len(verifiers)))
    for v, counts in enumerate(verifiers):
        sums = class_sums(counts)
        for number in range(len(table)):
            s = sums.columns(sums.table[fold != number].sum(axis=0))
            known = [
                (s[hit] + 1) / (s[hit] + s[miss] + 2)
                for hit, miss in (("tp", "fn"), ("tn", "fp"))
                if s[hit] + s[miss] > 0
            ]
            b = float(np.mean(known)) if known else 0.5
            table[number, v] = math.log(b / (1 - b))
    return table


def by_weight(
    verifiers: Sequence[VoteCounts], each: Sequence[int], fold: np.ndarray, weights: Floats
) -> Shares:
    """How often each pair is accepted, rejected and without a verdict, exactly.

    Args:
        verifiers: with the same pairs in the same order.
        each: votes of each.
        fold: (Q,)
        weights: (F, V)
    """
    rows = [
        tuple(zip(one.accepted.tolist(), one.rejected.tolist(), one.missing.tolist(), strict=True))
        for one in verifiers
    ]
    folds = fold[verifiers[0].question].tolist()
    known: dict[object, tuple[float, float, float]] = {}
    found = []
    for number, *votes in zip(folds, *rows, strict=True):
        key = (number, *votes)
        if key not in known:
            known[key] = _decide_one(votes, each, weights[number])
        found.append(known[key])
    accepted, rejected, none = np.array(found).T
    return accepted, rejected, none


def _decide_one(
    votes: Sequence[tuple[int, int, int]], each: Sequence[int], weights: Floats
) -> tuple[float, float, float]:
    sums, shares, none = np.zeros(1), np.ones(1), 1.0
    for row, k, weight in zip(votes, each, weights, strict=True):
        lead, margin, silent = _leads(*row, k)
        sums = (sums[:, None] + weight * lead).ravel()
        shares = (shares[:, None] * margin).ravel()
        none *= silent
    accepted, rejected = float(shares[sums > TINY].sum()), float(shares[sums < -TINY].sum())
    tied = max(0.0, 1 - accepted - rejected - none)
    return accepted + tied / 2, rejected + tied / 2, float(none)


@lru_cache(10_000)
def _leads(accepted: int, rejected: int, missing: int, k: int) -> tuple[np.ndarray, Floats, float]:
    """Of k of a pair's votes: each possible i - j, its probability, and that of no verdict."""
    table = subset_shares(accepted, rejected, missing, k)
    margin = np.array([np.trace(table, offset) for offset in range(k, -k - 1, -1)])
    return np.arange(-k, k + 1)[margin > 0], margin[margin > 0], float(table[0, 0])


def by_logit(counts: VoteCounts, k: int, seed: int = 0) -> Shares:
    """How often each pair is accepted, rejected and without a verdict, by the sum of the logits of k of its votes.

    Exact where there are at most 20,000 subsets of the votes; otherwise over 2,000 that are drawn. A vote without a
    logit does not vote.
    """
    known = np.array(
        [vote.logit is not None and vote.verdict is not None for vote in counts.votes], dtype=bool
    )
    given = [vote.logit if use else 0.0 for vote, use in zip(counts.votes, known, strict=True)]
    logit = np.clip(np.array(given, dtype=float), -LARGEST, LARGEST)
    found = np.zeros((3, len(counts.pairs)))
    starts = np.r_[0, np.cumsum(counts.samples)]
    order = np.argsort(counts.pair_of_vote, kind="stable")
    for n in sorted(set(counts.samples.tolist())):
        these = np.flatnonzero(counts.samples == n)
        places = order[starts[these][:, None] + np.arange(n)]  # (P', n) votes of each pair
        inside = _subsets(n, k, seed)  # (S, n) 0 or 1
        sums = logit[places] @ inside.T
        none = known[places].astype(float) @ inside.T == 0
        tied = (np.abs(sums) <= TINY) & ~none
        found[0, these] = (sums > TINY).mean(axis=1) + tied.mean(axis=1) / 2
        found[1, these] = (sums < -TINY).mean(axis=1) + tied.mean(axis=1) / 2
        found[2, these] = none.mean(axis=1)
    return found[0], found[1], found[2]


def _subsets(n: int, k: int, seed: int) -> Floats:
    if math.comb(n, k) <= EXACT:
        chosen = np.array(list(combinations(range(n), k)))
    else:
        rng = np.random.default_rng(seed)
        chosen = np.argsort(rng.random((DRAWS, n)), axis=1)[:, :k]
    inside = np.zeros((len(chosen), n))
    np.put_along_axis(inside, chosen, 1.0, axis=1)
    return inside
