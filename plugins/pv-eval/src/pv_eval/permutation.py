"""What two verifiers on the same pairs could show by chance: McNemar's exact test, and sign flips over questions."""

from __future__ import annotations

from math import comb

import numpy as np

from pv_eval.counts import Floats

__all__ = ["mcnemar", "sign_flip"]

EXACT = 15
"""With this many questions or fewer that differ, all 2^Q flips are looked at."""
BLOCK = 4_000_000


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p of McNemar's exact test: of the pairs on which one alone is right, each is the first's with 1/2.

        p = min(1, 2 P(X <= min(b, c))),  X ~ Binomial(b + c, 1/2)

    It takes pairs as independent, which those of one question are not: read it beside `sign_flip`.

    Example: 1 and 6: 2 (1 + 7) / 128 = 0.125. 0 and 0: 1.

    Source: Q. McNemar 1947, doi:10.1007/BF02295996, in the exact form.

    Args:
        only_first: b, pairs on which the first alone is right.
        only_second: c, likewise.
    """
    number = only_first + only_second
    # of whole numbers, exact up to the one division
    tail = sum(comb(number, i) for i in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / 2**number)


def sign_flip(differences: Floats, *, flips: int = 10_000, seed: int = 0) -> float:
    """Two-sided p: how often chance signs give a sum as far from 0 as the one seen.

    If the verifiers are alike, either could have got the other's votes on a question, so that each question's
    difference has either sign. Exact for up to 15 questions that differ, else (1 + hits)/(1 + flips) of drawn signs.

    Example: differences 0.1, 0.2, 0.3 of three questions: of the 8 signs, two reach 0.6: p = 0.25.

    Args:
        differences: (Q,) what each question adds to the difference.
        flips: to draw.
        seed: of the draw.
    """
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    seen = abs(float(moved.sum())) * (1 - 1e-12) - 1e-15  # sums in another order differ in the last bits
    if len(moved) <= EXACT:
        numbers = np.arange(2 ** len(moved))
        signs = 2.0 * ((numbers[:, None] >> np.arange(len(moved))) & 1) - 1
        return float(np.mean(np.abs(signs @ moved) >= seen))
    rng = np.random.default_rng(seed)
    at_once = max(1, BLOCK // len(moved))
    hits = 0
    for start in range(0, flips, at_once):
        signs = 2.0 * rng.integers(0, 2, size=(min(at_once, flips - start), len(moved))) - 1
        hits += int((np.abs(signs @ moved) >= seen).sum())
    return (1 + hits) / (1 + flips)
