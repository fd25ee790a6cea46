"""maj@k: the verdict that most of k votes give, its accuracy exactly over all subsets of k of n votes.

A vote without a verdict does not vote. Of a pair with a votes True, r False and m without a verdict, a subset of size k
holds i True and j False with the probability

    C(a, i) C(r, j) C(m, k - i - j) / C(n, k)                              multivariate hypergeometric

and is right where the side of the label has more. A tie (i = j > 0) is worth 1/2 as a coin would be (`uniform`), 1
(`optimistic`) or 0 (`pessimistic`): with 8 votes ties are frequent, and these are the bounds. Where nobody votes
(i = j = 0) there is no verdict, which is wrong under each.

Example: a right proof with votes TTF, k = 2: {TT} is right, {TF} twice a tie: (1 + 2/2)/3 = 0.667,
with the bounds 1 and 0.333.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import comb
from typing import Literal, TypeAlias

import numpy as np

from pv_eval.counts import Floats, VoteCounts
from pv_rl.errors import ConfigError

__all__ = ["TIES", "Ties", "check_ties", "majority_right", "majority_verdicts", "right_by_majority"]

Ties: TypeAlias = Literal["uniform", "optimistic", "pessimistic"]
TIES = ("uniform", "optimistic", "pessimistic")


def check_ties(ties: str) -> None:
    """Raises:
    ConfigError: there is no such treatment.
    """
    if ties not in TIES:
        raise ConfigError(f"ties={ties!r}; ties are {', '.join(TIES)}")


@lru_cache(maxsize=65536)
def right_by_majority(for_label: int, against: int, missing: int, k: int, ties: Ties) -> float:
    """Probability that k of the votes on one pair have the label as their majority.

    Args:
        for_label: votes that are the label.
        against: votes that are not.
        missing: votes without a verdict.
        k: size of the subsets, 1 to the number of votes.
        ties: what a tie is worth.
    """
    worth = {"uniform": 0.5, "optimistic": 1.0, "pessimistic": 0.0}[ties]
    right = tied = 0
    for i in range(min(for_label, k) + 1):
        for j in range(min(against, k - i, i) + 1):
            ways = comb(for_label, i) * comb(against, j) * comb(missing, k - i - j)
            if i > j:
                right += ways
            elif i:
                tied += ways
    subsets = comb(for_label + against + missing, k)
    return right / subsets + worth * (tied / subsets)


def majority_right(counts: VoteCounts, k: int, ties: Ties = "uniform") -> Floats:
    """(P,) the probability above for each pair.

    Raises:
        ConfigError: k is no number of votes that every pair has, or there is no such treatment of ties.
    """
    check_ties(ties)
    fewest = int(counts.samples.min())
    if type(k) is not int or not 1 <= k <= fewest:
        raise ConfigError(f"maj@k with k={k!r}; k is 1 to {fewest}, the fewest votes that a pair has")
    for_label = np.where(counts.label, counts.accepted, counts.rejected).tolist()
    against = np.where(counts.label, counts.rejected, counts.accepted).tolist()
    rows = zip(for_label, against, counts.missing.tolist(), strict=True)
    return np.array([right_by_majority(*row, k, ties) for row in rows])


def majority_verdicts(counts: VoteCounts) -> tuple[list[bool | None], Counter[str]]:
    """What most of all votes on each pair say: True, False, or None for a tie or no verdict at all; and how often."""
    verdicts: list[bool | None] = []
    kinds: Counter[str] = Counter()
    for accepted, rejected in zip(counts.accepted.tolist(), counts.rejected.tolist(), strict=True):
        verdicts.append(None if accepted == rejected else accepted > rejected)
        kinds["decided" if accepted != rejected else "tied" if accepted else "no verdict"] += 1
    return verdicts, kinds
