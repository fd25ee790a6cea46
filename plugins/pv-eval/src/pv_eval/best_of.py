"""Best-of-k of one problem: how often the proof that a verifier likes best among k of N is right, exactly.

    E over all subsets S of size k of [G(m)],  m = argmax_{s in S} M(s)

With the candidates in tied groups of equal score, A of them above a group of g, c of which are right, the best of a
subset is in the group with the probability (C(N-A, k) - C(N-A-g, k)) / C(N, k). Which of the tied is taken:

    uniform      any of those in the subset alike; by symmetry right with c/g
    optimistic   a right one if there is one:     (C(N-A, k) - C(N-A-c, k)) / C(N, k)
    pessimistic  a wrong one if there is one:     (C(N-A-(g-c), k) - C(N-A-g, k)) / C(N, k)

A mean of 8 votes has 9 values, so that ties decide much of the result: look at the bounds. Sorting is the dearest part,
O(N log N).

This is not verl's `best@N` (verl/trainer/ppo/metric_utils.py): that draws N of the responses with replacement 1,000
times and takes the largest of the metric itself, so it says how often any of N is right (with repeats), which is the
oracle here; no verifier chooses anything.

Example: scores 1, 1, 0 of a right, a wrong and a right proof, k = 2. Subsets: {1,2} a tie, {1,3} right, {2,3} wrong.
Uniform 1.5/3 = 0.5, optimistic 2/3, pessimistic 1/3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pv_eval.counts import Floats
from pv_eval.majority import Ties, check_ties
from pv_rl.errors import ConfigError, DataError

__all__ = ["best_of_curve", "best_of_k", "oracle_curve"]


def best_of_k(scores: Sequence[float], correct: Sequence[bool], k: int, ties: Ties = "uniform") -> float:
    """The expectation above.

    Args:
        scores: (N,) M, higher is better. No NaN; -inf is a candidate that comes last.
        correct: (N,) G, True or False.
        k: 1 to N.
        ties: `uniform`, or a bound: `optimistic`, `pessimistic`.

    Raises:
        DataError: (a ValueError) a score or a mark that is none, or lengths that differ.
        ConfigError: (a ValueError) k out of range, or no such treatment of ties.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= max(1, len(scores)):
        raise ConfigError(f"best-of-k with k={k!r} of {len(scores)} candidates; k is 1 to their number")
    return float(_expect(scores, correct, np.array([k]), ties)[0])


def best_of_curve(scores: Sequence[float], correct: Sequence[bool], ties: Ties = "uniform") -> Floats:
    """(N,) the expectation for k = 1, ..., N. See `best_of_k`."""
    return _expect(scores, correct, np.arange(1, len(scores) + 1), ties)


def oracle_curve(correct: Sequence[bool]) -> Floats:
    """(N,) for k = 1, ..., N how often a subset has a right candidate: what a perfect verifier would reach."""
    return best_of_curve(np.asarray(correct, dtype=float).tolist(), correct)


def _expect(scores: Sequence[float], correct: Sequence[bool], sizes: np.ndarray, ties: Ties) -> Floats:
    """(K,) for each of the sizes (K,)."""
    check_ties(ties)
    given, right = _read(scores, correct)
    number = len(given)
    order = np.argsort(-given, kind="stable")
    given, right = given[order], right[order]
    starts = np.flatnonzero(np.r_[True, given[1:] != given[:-1]])
    ends = np.r_[starts[1:], number]
    before = np.r_[0, np.cumsum(right)]
    good = before[ends] - before[starts]
    none = _without(number, sizes)
    above, through = none[:, number - starts], none[:, number - ends]
    if ties == "uniform":
        parts = (above - through) * (good / (ends - starts))
    elif ties == "optimistic":
        parts = above - none[:, number - starts - good]
    else:
        parts = none[:, number - ends + good] - through
    return np.clip(parts.sum(axis=1), 0.0, 1.0)


def _without(number: int, sizes: np.ndarray) -> Floats:
    """(K, N + 1): C(m, k) / C(N, k) for m = 0, ..., N, by C(m - 1, k) = C(m, k) (m - k) / m, which cannot overflow."""
    m = np.arange(number, 0, -1)
    steps = np.maximum(m - sizes[:, None], 0) / m
    falling = np.hstack([np.ones((len(sizes), 1)), np.cumprod(steps, axis=1)])
    return falling[:, ::-1]


def _read(scores: Sequence[float], correct: Sequence[bool]) -> tuple[Floats, np.ndarray]:
    try:
        given = np.array(scores, dtype=float)
        marks = np.asarray(correct)
    except (TypeError, ValueError) as error:
        raise DataError(f"best-of-k takes numbers as scores and True or False as correct: {error}") from error
    if given.ndim != 1 or given.shape != marks.shape or not len(given):
        raise DataError(
            f"best-of-k takes as many scores as marks, one or more of each; given {given.shape} and {marks.shape}"
        )
    if np.isnan(given).any():
        raise DataError(
            f"{int(np.isnan(given).sum())} of {len(given)} scores are NaN; give -inf for a candidate that comes last"
        )
    if marks.dtype.kind not in "biuf" or not np.isin(marks, (0, 1)).all():
        raise DataError(
            "a candidate is correct, True, or not, False; grades have to be made so by a rule first"
        )
    return given, marks.astype(np.int64)
