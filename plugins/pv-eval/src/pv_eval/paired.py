"""Paired comparison: two verifiers on the same pairs, as differences with intervals and as tests.

A difference is second minus first. Its interval leaves the same questions out for both (`intervals`), so that what
makes a question hard for both cancels. Avg@k and balanced accuracy have a test by question: `sign_flip`, or, where
fewer than 8 questions of a class differ, the t of the interval, because so few signs cannot give a small p. `mcnemar`
tests majority verdicts, where a tie or a missing verdict is not right.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from pv_eval.counts import Floats, Statistic, VoteCounts, quotient, sum_by_question
from pv_eval.intervals import Estimate, Intervals, estimate_all, zero_test
from pv_eval.majority import majority_verdicts
from pv_eval.metrics import METRICS, class_sums
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = [
    "OTHER",
    "Comparison",
    "common",
    "compare",
    "difference",
    "mcnemar",
    "metric_differences",
    "question_test",
    "sign_flip",
]

OTHER = "second "
"""Before the names of the second verifier's sums."""
EXACT = 15
"""Up to this many questions that differ, all 2^Q sign flips are enumerated."""
FEWEST = 8
"""n questions that differ give a p of at least 2^(1 - n), whatever their size: with fewer than 8, more than .01."""
BY_CLASS = {"accuracy": False, "balanced_accuracy": True}
"""Metrics with a test by question, and whether it is of the mean of both classes."""
BLOCK = 4_000_000
"""Numbers in a block of drawn signs, 32 MB."""


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
    """For `accuracy` and `balanced_accuracy`, of those compared; NaN where that is undefined."""
    tests: Mapping[str, str]
    """By the same names, the test that the p comes from: `sign flips` or `cluster t`."""


def common(first: VoteCounts, second: VoteCounts) -> tuple[VoteCounts, VoteCounts]:
    """The counts of both on the pairs that both have, in the same order.

    Raises:
        DataError: they share no pair, or a pair has another label, grade, question or weight in the second.
    """
    of_second = {pair.pair_id: pair for pair in second.pairs}
    shared = [(pair, of_second[pair.pair_id]) for pair in first.pairs if pair.pair_id in of_second]
    if not shared:
        raise DataError("the two verifiers have no pair in common; compare them on the same set")
    odd = [
        one.pair_id
        for one, other in shared
        if (one.label, one.grade, one.question_id, one.weight)
        != (other.label, other.grade, other.question_id, other.weight)
    ]
    if odd:
        raise DataError(
            f"the two sets differ in the label, the grade, the question or the weight of {plural(len(odd), 'pair')}, "
            f"{odd[0][:80]!r} the first: "
            "evaluate both on one set"
        )
    names = {one.pair_id for one, _ in shared}
    one = first.part([pair.pair_id in names for pair in first.pairs])
    two = second.part([pair.pair_id in names for pair in second.pairs])
    return one, two.in_order_of(one)


def compare(
    first: VoteCounts, second: VoteCounts, how: Intervals | None = None, only: Collection[str] = METRICS
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
    how = how or Intervals()
    one, two = common(first, second)
    verdicts = [majority_verdicts(counts)[0] for counts in (one, two)]
    right = [
        np.array([verdict is bool(y) for verdict, y in zip(v, one.label, strict=True)]) for v in verdicts
    ]
    tests = {
        name: question_test(one, two, how, by_class=by_class)
        for name, by_class in BY_CLASS.items()
        if name in only
    }
    only_first, only_second = int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum())
    return Comparison(
        pairs=len(one.pairs),
        questions=len(one.questions),
        left_out=len(first.pairs) + len(second.pairs) - 2 * len(one.pairs),
        differences=metric_differences(one, two, how, only),
        only_first=only_first,
        only_second=only_second,
        ties=(verdicts[0].count(None), verdicts[1].count(None)),
        mcnemar_p=mcnemar(only_first, only_second),
        sign_flip_p={name: p for name, (p, _) in tests.items()},
        tests={name: test for name, (_, test) in tests.items()},
    )


def metric_differences(
    one: VoteCounts, two: VoteCounts, how: Intervals, only: Collection[str] = METRICS
) -> dict[str, Estimate]:
    """By the names of `only`, second minus first, on the same pairs in the same order."""
    sums = class_sums(one).beside(class_sums(two), OTHER)
    return estimate_all(sums, {name: difference(METRICS[name]) for name in only}, how, plain=True)


def difference(statistic: Statistic) -> Statistic:
    """Second minus first, of sums that stand `beside` each other under `OTHER`."""
    return lambda s: statistic({name: s[OTHER + name] for name in s if OTHER + name in s}) - statistic(s)


def question_test(one: VoteCounts, two: VoteCounts, how: Intervals, *, by_class: bool) -> tuple[float, str]:
    """Two-sided p that two verifiers are alike on the same pairs, in the same order, by question.

    Args:
        one: votes of the first.
        two: votes of the second.
        how: the number of drawn flips and their seed.
        by_class: the mean of both classes (balanced accuracy) instead of the mean over all pairs (Avg@k).

    Returns:
        p, NaN where a class is absent, and the test that it comes from, `sign flips` or `cluster t`.
    """
    classes = [one.label, ~one.label] if by_class else [np.ones_like(one.label)]
    columns = {f"weight {n}": inside * 1.0 for n, inside in enumerate(classes)}
    columns |= {f"moved {n}": inside * (two.right - one.right) for n, inside in enumerate(classes)}
    sums = sum_by_question(one, columns)
    weights, moves = np.hsplit(sums.table, 2)
    if (weights.sum(axis=0) <= 0).any():
        return math.nan, ""
    moves[np.abs(moves) <= 1e-12 * weights.max()] = 0.0  # shares of votes that differ in the last bits
    differing = [int(number) for number in (moves != 0).sum(axis=0) if number]
    if differing and min(differing) < FEWEST:
        means = [quotient(f"moved {n}", f"weight {n}") for n in range(len(classes))]
        p = zero_test(sums, lambda s: sum((mean(s) for mean in means), np.float64(0)))
        if not math.isnan(p):
            return p, "cluster t"
    return sign_flip(moves, weights, flips=how.flips or 10_000, seed=how.seed), "sign flips"


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
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


def sign_flip(
    differences: Floats, weights: Floats | None = None, *, flips: int = 10_000, seed: int = 0
) -> float:
    """Two-sided p of a permutation test: how often random signs give a |T| as large as the observed one.

    If the verifiers are alike, either could have got the other's votes on a question, so each question's difference has
    either sign. With d_qc what question q adds to the difference in class c, w_qc its weight there, W_c their sum, and
    signs s_q, the statistic is studentised by the spread around each class's own mean:

        T(s) = D / sqrt(sum_q e_q^2),  D_c = sum_q s_q d_qc / W_c,  D = sum_c D_c,
        e_q = sum_c (s_q d_qc - w_qc D_c) / W_c

    so that a question with many proofs, or a class in few questions, does not hide a difference that all questions
    share. Exact for up to 15 questions that differ, else (1 + hits)/(1 + flips) of drawn signs.

    Example: differences 0.1, 0.2, 0.3 of three questions: of the 8 signs, two reach |T|: p = 0.25.

    Args:
        differences: (Q,) or (Q, C).
        weights: of the same shape; by default all 1.
        flips: to draw.
        seed: of the draw.
    """
    given = differences.reshape(len(differences), -1)
    sizes = np.ones_like(given) if weights is None else weights.reshape(given.shape)
    moved = (given != 0).any(axis=1)
    number = int(moved.sum())
    if not number:
        return 1.0
    moves, shares = given / np.abs(given).max() / sizes.sum(axis=0), sizes / sizes.sum(axis=0)
    each, square, both = moves[moved], float((moves.sum(axis=1) ** 2).sum()), shares.T @ shares
    columns = np.hstack([each, each.sum(axis=1, keepdims=True) * shares[moved]])

    def size(signs: Floats) -> Floats:
        """(F,) T^2 / (1 + T^2) of (F, M) signs, which has a value where the spread is 0."""
        means, crossed = np.hsplit(signs @ columns, 2)
        spread = square - 2 * (means * crossed).sum(axis=1) + ((means @ both) * means).sum(axis=1)
        away = means.sum(axis=1) ** 2
        return away / np.maximum(away + np.maximum(spread, 0), 1e-300)

    least = float(size(np.ones((1, number)))[0]) - 1e-9  # sums in another order differ in the last bits
    if number <= EXACT:
        signs = 1.0 - 2.0 * (np.arange(2**number)[:, None] >> np.arange(number) & 1)
        return float((size(signs) >= least).mean())
    rng = np.random.default_rng(seed)
    at_once = max(1, BLOCK // number)
    hits = sum(
        int((size(rng.integers(0, 2, (min(at_once, flips - start), number)) * 2.0 - 1) >= least).sum())
        for start in range(0, flips, at_once)
    )
    return (1 + hits) / (1 + flips)
