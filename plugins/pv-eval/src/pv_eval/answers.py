"""Problems with an answer: candidates vote for theirs, each by a verifier's score (weighted best-of-k) or each alike.

    answer of S = argmax_a sum of scores of the candidates in S whose answer is a;  1 for each: majority vote

The mean over all subsets S of size k is exact where there are at most 20,000 of them; otherwise it is the mean of drawn
subsets, and the standard error says how far that may be off. Equal sums are a tie: uniform, or a bound.

Example: answers x, x, y with scores 0.2, 0.2, 0.9 where y is right, k = 3: 0.4 against 0.9, right; by majority wrong.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pv_eval.majority import Ties, check_ties
from pv_rl.errors import ConfigError, DataError

__all__ = ["EXACT", "AnswerChoice", "weighted_best_of_k"]

EXACT = 20_000
"""Subsets that are looked at one by one."""


@dataclass(frozen=True, kw_only=True)
class AnswerChoice:
    """How often the chosen answer is right."""

    value: float
    standard_error: float
    """Of the drawing; 0 where `exact`."""
    exact: bool


def weighted_best_of_k(
    answers: Sequence[str | None],
    correct: Sequence[bool],
    k: int,
    scores: Sequence[float] | None = None,
    ties: Ties = "uniform",
    *,
    draws: int = 2000,
    seed: int = 0,
) -> AnswerChoice:
    """Of one problem.

    Args:
        answers: (N,) normalised by the caller: equal texts are equal answers. None: no answer, so no vote.
        correct: (N,) whether the answer is right.
        k: 1 to N.
        scores: (N,) finite; None for a majority vote.
        ties: between answers.
        draws: 2 or more, used where there are too many subsets.
        seed: of the draws.

    Raises:
        DataError: lengths differ, a score is not finite, or an answer is right in one place and wrong in another.
        ConfigError: k or draws out of range, or no such treatment of ties.
    """
    check_ties(ties)
    number = len(answers)
    weights = [1.0] * number if scores is None else [float(score) for score in scores]
    if not number or len(correct) != number or len(weights) != number:
        raise DataError(
            f"{number} answers, {len(correct)} marks and {len(weights)} scores; they are as many, and at least one"
        )
    if not all(map(math.isfinite, weights)):
        raise DataError("a score is not finite; leave such a candidate out, or give it 0")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= number or draws < 2:
        raise ConfigError(
            f"k={k!r} of {number} candidates, {draws} draws; k is 1 to {number}, draws 2 or more"
        )
    right: dict[str, bool] = {}
    for answer, mark in zip(answers, correct, strict=True):
        if answer is not None and right.setdefault(answer, bool(mark)) != bool(mark):
            raise DataError(f"the answer {answer[:80]!r} is right in one place and wrong in another")

    def worth(subset: Iterable[int]) -> float:
        return _worth([(answers[i], weights[i]) for i in subset], right, ties)

    if math.comb(number, k) <= EXACT:
        values = [worth(subset) for subset in combinations(range(number), k)]
        return AnswerChoice(value=math.fsum(values) / len(values), standard_error=0.0, exact=True)
    rng = np.random.default_rng(seed)
    values = [worth(rng.choice(number, size=k, replace=False).tolist()) for _ in range(draws)]
    return AnswerChoice(
        value=math.fsum(values) / draws,
        standard_error=float(np.std(values, ddof=1)) / math.sqrt(draws),
        exact=False,
    )


def _worth(voices: Sequence[tuple[str | None, float]], right: dict[str, bool], ties: Ties) -> float:
    """1 if the chosen answer is right, a share of it in a tie, 0 if nobody has an answer."""
    sums: defaultdict[str, float] = defaultdict(float)
    for answer, weight in voices:
        if answer is not None:
            sums[answer] += weight
    if not sums:
        return 0.0
    most = max(sums.values())
    # 0.1 + 0.2 is not 0.3: sums that differ in the last bits are equal
    best = [right[answer] for answer, total in sums.items() if total >= most - 1e-9 * max(1.0, abs(most))]
    return {
        "uniform": sum(best) / len(best),
        "optimistic": float(any(best)),
        "pessimistic": float(all(best)),
    }[ties]
