"""Majority votes: maj@k of a verifier's verdicts, and weighted votes for the answer of a problem.

maj@k is the accuracy of the majority verdict of k votes, exactly, over all subsets of k of n votes. A missing verdict
does not vote. Of a pair with a votes True, r False and m without a verdict, a subset of size k
holds i True and j False with the probability

    C(a, i) C(r, j) C(m, k - i - j) / C(n, k)                              multivariate hypergeometric

and is right where the label has more votes. A tie (i = j > 0) counts 1/2 like a coin (`uniform`), 1 (`optimistic`) or
0 (`pessimistic`): with 8 votes ties are frequent, and these are the bounds. A subset without any verdict
(i = j = 0) is wrong in all three.

Example: a right proof with votes TTF, k = 2: {TT} is right, {TF} twice a tie: (1 + 2/2)/3 = 0.667,
with the bounds 1 and 0.333.

For problems with an answer, candidates vote for theirs, each by a verifier's score (weighted best-of-k) or each by 1:

    answer of S = argmax_a sum of scores of the candidates in S whose answer is a

The mean over all subsets S of size k is exact where there are at most 20,000 of them; otherwise it is the mean of drawn
subsets, with its standard error. Equal sums (up to the tolerance of `pv_eval.ties`) are a tie, treated as above.

Example: answers x, x, y with scores 0.2, 0.2, 0.9 where y is right, k = 3: 0.4 against 0.9, right; by majority wrong.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Literal, TypeAlias

import numpy as np

from pv_eval.counts import Floats, VoteCounts
from pv_eval.subsets import subsets_by_verdicts
from pv_eval.ties import near
from pv_judge.pages.text import plural
from pv_rl.errors import ConfigError, DataError

__all__ = [
    "EXACT",
    "TIES",
    "AnswerChoice",
    "Ties",
    "check_ties",
    "majority_right",
    "majority_verdicts",
    "right_by_majority",
    "weighted_best_of_k",
]

Ties: TypeAlias = Literal["uniform", "optimistic", "pessimistic"]
TIES: tuple[Ties, ...] = ("uniform", "optimistic", "pessimistic")
EXACT = 20_000
"""Most subsets of candidates that are enumerated; of more, some are drawn."""


def check_ties(ties: str) -> None:
    """Check the name of a treatment of ties.

    Raises:
        ConfigError: it is unknown.
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
        ties: how a tie counts.
    """
    worth = {"uniform": 0.5, "optimistic": 1.0, "pessimistic": 0.0}[ties]
    right = tied = 0
    for i, j, ways in subsets_by_verdicts(for_label, against, missing, k):
        if i > j:
            right += ways
        elif i == j > 0:
            tied += ways
    subsets = comb(for_label + against + missing, k)
    return right / subsets + worth * (tied / subsets)


def majority_right(counts: VoteCounts, k: int, ties: Ties = "uniform") -> Floats:
    """(P,) the probability above for each pair.

    Raises:
        ConfigError: a pair has fewer than k votes, k is below 1, or the treatment of ties is unknown.
    """
    check_ties(ties)
    fewest = int(counts.samples.min())
    if type(k) is not int or not 1 <= k <= fewest:
        raise ConfigError(f"maj@k with k={k!r}; k is 1 to {fewest}, the fewest votes of a pair")
    for_label = np.where(counts.label, counts.accepted, counts.rejected).tolist()
    against = np.where(counts.label, counts.rejected, counts.accepted).tolist()
    rows = zip(for_label, against, counts.missing.tolist(), strict=True)
    return np.array([right_by_majority(*row, k, ties) for row in rows])


def majority_verdicts(counts: VoteCounts) -> tuple[list[bool | None], Counter[str]]:
    """Majority verdict of each pair (None: a tie, or no verdict), and pairs by `decided`, `tied`, `no verdict`."""
    verdicts: list[bool | None] = []
    kinds: Counter[str] = Counter()
    for accepted, rejected in zip(counts.accepted.tolist(), counts.rejected.tolist(), strict=True):
        verdicts.append(None if accepted == rejected else accepted > rejected)
        kinds["decided" if accepted != rejected else "tied" if accepted else "no verdict"] += 1
    return verdicts, kinds


@dataclass(frozen=True, kw_only=True)
class AnswerChoice:
    """How often the chosen answer is right."""

    value: float
    standard_error: float
    """Of the drawn subsets; 0 where `exact`."""
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
    """How often the answer with the largest sum of scores is right, for one problem.

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
        ConfigError: k or draws out of range, or an unknown treatment of ties.
    """
    check_ties(ties)
    number = len(answers)
    weights = [1.0] * number if scores is None else [float(score) for score in scores]
    if not number or len(correct) != number or len(weights) != number:
        raise DataError(
            f"{plural(number, 'answer')}, {plural(len(correct), 'mark')} and "
            f"{plural(len(weights), 'score')}; give the same number of each, 1 or more"
        )
    if not all(map(math.isfinite, weights)):
        raise DataError("a score is not finite; leave that candidate out, or give it 0")
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
    """1 if the chosen answer is right, a share of it in a tie, 0 without any answer."""
    sums: defaultdict[str, float] = defaultdict(float)
    for answer, weight in voices:
        if answer is not None:
            sums[answer] += weight
    if not sums:
        return 0.0
    ranked = sorted(sums.items(), key=lambda one: -one[1])
    gaps = (n for n in range(1, len(ranked)) if not near(ranked[n - 1][1], ranked[n][1]))
    best = [right[answer] for answer, _ in ranked[: next(gaps, len(ranked))]]
    return {
        "uniform": sum(best) / len(best),
        "optimistic": float(any(best)),
        "pessimistic": float(all(best)),
    }[ties]
