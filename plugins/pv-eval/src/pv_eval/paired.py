"""Paired comparison: two verifiers on the same pairs, as differences with intervals and as tests.

A difference is second minus first. Its interval draws the same questions for both (the bootstrap of `intervals`), so
that what makes a question hard for both cancels. `sign_flip` tests Avg@k and balanced accuracy, which are sums over
questions; `mcnemar` tests majority verdicts, where a tie or a missing verdict is not right.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from pv_eval.counts import Floats, Statistic, VoteCounts
from pv_eval.intervals import Bootstrap, Estimate, estimate_all
from pv_eval.majority import majority_verdicts
from pv_eval.metrics import METRICS, class_sums
from pv_rl.errors import DataError

__all__ = ["Comparison", "common", "compare", "mcnemar", "sign_flip"]

OTHER = "second "
EXACT = 15
"""Up to this many questions that differ, all 2^Q sign flips are enumerated."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two verifiers compared."""

    pairs: int
    """That both voted on."""
    questions: int
    left_out: int
    """Pairs that only one of them voted on."""
    differences: Mapping[str, Estimate]
    """By the metric's name, second minus first."""
    only_first: int
    """Pairs on which the majority of the first alone is right."""
    only_second: int
    ties: tuple[int, int]
    """Pairs on which each has no majority."""
    mcnemar_p: float
    sign_flip_p: Mapping[str, float]
    """For `accuracy` and `balanced_accuracy`; NaN where that is undefined."""


def common(first: VoteCounts, second: VoteCounts) -> tuple[VoteCounts, VoteCounts]:
    """The counts of both on the pairs that both have, in the same order.

    Raises:
        DataError: they share no pair, or a pair has another label, question or weight in the second.
    """
    of_second = {pair.pair_id: pair for pair in second.pairs}
    shared = [(pair, of_second[pair.pair_id]) for pair in first.pairs if pair.pair_id in of_second]
    if not shared:
        raise DataError("the two verifiers have no pair in common; compare them on the same set")
    odd = [
        one.pair_id
        for one, other in shared
        if (one.label, one.question_id, one.weight) != (other.label, other.question_id, other.weight)
    ]
    if odd:
        raise DataError(
            f"{len(odd)} pairs have another label, question or weight in the two sets, {odd[0][:80]!r} the first: "
            "evaluate both on one set"
        )
    names = {one.pair_id for one, _ in shared}
    one = first.part([pair.pair_id in names for pair in first.pairs])
    two = second.part([pair.pair_id in names for pair in second.pairs])
    return one, two.in_order_of(one)


def compare(
    first: VoteCounts, second: VoteCounts, how: Bootstrap | None = None, only: Collection[str] = METRICS
) -> Comparison:
    """Compare two verifiers.

    Args:
        first: of one verifier.
        second: of the other.
        how: of the intervals.
        only: names of `METRICS`; the others have neither a difference nor a test.

    Raises:
        DataError: see `common`.
    """
    how = how or Bootstrap()
    one, two = common(first, second)
    verdicts = [majority_verdicts(counts)[0] for counts in (one, two)]
    right = [
        np.array([verdict is bool(y) for verdict, y in zip(v, one.label, strict=True)]) for v in verdicts
    ]
    only_first, only_second = int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum())
    return Comparison(
        pairs=len(one.pairs),
        questions=len(one.questions),
        left_out=len(first.pairs) + len(second.pairs) - 2 * len(one.pairs),
        differences=estimate_all(
            class_sums(one).beside(class_sums(two), OTHER),
            {name: _difference(METRICS[name]) for name in only},
            how,
        ),
        only_first=only_first,
        only_second=only_second,
        ties=(verdicts[0].count(None), verdicts[1].count(None)),
        mcnemar_p=mcnemar(only_first, only_second),
        sign_flip_p={name: test(one, two, how.seed) for name, test in TESTS.items() if name in only},
    )


def _difference(statistic: Statistic) -> Statistic:
    return lambda s: statistic({name: s[OTHER + name] for name in s if OTHER + name in s}) - statistic(s)


def _by_question(one: VoteCounts, two: VoteCounts, only: bool | None = None) -> Floats:
    """(Q,) what each question adds to the difference of the mean shares of right votes, of a class or of all."""
    weight = one.weight if only is None else one.weight * (one.label == only)
    values = weight * (two.right - one.right) / max(weight.sum(), 1e-300)
    return np.bincount(one.question, weights=values, minlength=len(one.questions))


def _accuracy_p(one: VoteCounts, two: VoteCounts, seed: int) -> float:
    return sign_flip(_by_question(one, two), seed=seed)


def _balanced_p(one: VoteCounts, two: VoteCounts, seed: int) -> float:
    if any(one.weight[one.label == only].sum() == 0 for only in (True, False)):
        return math.nan
    return sign_flip((_by_question(one, two, True) + _by_question(one, two, False)) / 2, seed=seed)


TESTS = {"accuracy": _accuracy_p, "balanced_accuracy": _balanced_p}


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p of McNemar's exact test: a pair on which one alone is right is the first's with probability 1/2.

        p = min(1, 2 P(X <= min(b, c))),  X ~ Binomial(b + c, 1/2)

    It takes pairs as independent, which those of one question are not: read it beside `sign_flip`.

    Example: 1 and 6: 2 (1 + 7) / 128 = 0.125. 0 and 0: 1.

    Source: Q. McNemar 1947, doi:10.1007/BF02295996, in the exact form.

    Args:
        only_first: b, pairs on which the first alone is right.
        only_second: c, likewise.
    """
    from scipy.stats import binomtest

    number = only_first + only_second
    return float(binomtest(only_first, number).pvalue) if number else 1.0


def sign_flip(differences: Floats, *, flips: int = 10_000, seed: int = 0) -> float:
    """Two-sided p of a permutation test: how often random signs give a sum as far from 0 as the observed one.

    If the verifiers are alike, either could have got the other's votes on a question, so each question's difference has
    either sign. Exact for up to 15 questions that differ, else (1 + hits)/(1 + flips) of drawn signs.

    Example: differences 0.1, 0.2, 0.3 of three questions: of the 8 signs, two reach 0.6: p = 0.25.

    Args:
        differences: (Q,) what each question adds to the difference.
        flips: to draw.
        seed: of the draw.
    """
    from scipy.stats import permutation_test

    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    found = permutation_test(
        (moved,),
        # rounded: sums in another order differ in the last bits
        lambda x, axis: np.abs(x.sum(axis=axis)).round(12),
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=2**EXACT if len(moved) <= EXACT else flips,
        batch=max(1, 4_000_000 // len(moved)),
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)
