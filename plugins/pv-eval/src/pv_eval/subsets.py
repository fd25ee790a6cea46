"""Subsets of votes: how many of k of n votes accept, reject, or have no verdict (multivariate hypergeometric).

Of a votes True, r False and m without a verdict, C(a, i) C(r, j) C(m, k - i - j) of the C(n, k) subsets of size k hold
i True and j False.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb

import numpy as np

from pv_eval.counts import Floats

__all__ = ["subset_shares", "subsets_by_verdicts"]


def subsets_by_verdicts(accepted: int, rejected: int, missing: int, k: int) -> Iterator[tuple[int, int, int]]:
    """i, j, and the number of subsets of size k with i votes True and j False, where it is not 0."""
    for i in range(min(accepted, k) + 1):
        for j in range(min(rejected, k - i) + 1):
            ways = comb(accepted, i) * comb(rejected, j) * comb(missing, k - i - j)
            if ways:
                yield i, j, ways


@lru_cache(maxsize=65536)
def subset_shares(accepted: int, rejected: int, missing: int, k: int) -> Floats:
    """(k + 1, k + 1) the share of subsets that hold i votes True and j False. Do not write to it: it is cached."""
    table = np.zeros((k + 1, k + 1))
    subsets = comb(accepted + rejected + missing, k)
    for i, j, ways in subsets_by_verdicts(accepted, rejected, missing, k):
        table[i, j] = ways / subsets
    return table
