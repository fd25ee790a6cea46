"""Best-of-k against every subset, and many problems at once."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from evaluate_cases import counted, drawn, pair, votes

from pv_eval import best_of_curve, best_of_k, check, weighted_best_of_k
from pv_eval.best_of import best_of_set, oracle_curve, scores_of
from pv_eval.counts import count_votes
from pv_eval.intervals import Intervals
from pv_rl.errors import ConfigError, DataError

BARE = Intervals(flips=0)
TIES = ("uniform", "optimistic", "pessimistic")


def by_hand(scores, correct, k, ties) -> Fraction:
    worth = Fraction(0)
    for subset in combinations(range(len(scores)), k):
        top = max(scores[i] for i in subset)
        best = [correct[i] for i in subset if scores[i] == top]
        worth += {
            "uniform": Fraction(sum(best), len(best)),
            "optimistic": Fraction(any(best)),
            "pessimistic": Fraction(all(best)),
        }[ties]
    return worth / comb(len(scores), k)


@pytest.mark.parametrize("ties", TIES)
def test_it_equals_every_subset_with_ties(ties):
    rng = random.Random(1)
    for number in range(1, 10):
        for levels in (1, 3, 100):
            scores = [rng.randrange(levels) / 8 for _ in range(number)]
            correct = [rng.random() < 0.4 for _ in range(number)]
            curve = best_of_curve(scores, correct, ties)
            for k in range(1, number + 1):
                expected = float(by_hand(scores, correct, k, ties))
                assert best_of_k(scores, correct, k, ties) == pytest.approx(expected, abs=1e-12)
                assert curve[k - 1] == pytest.approx(expected, abs=1e-12)


def test_the_example_of_the_docstring():
    scores, correct = [1, 1, 0], [True, False, True]
    assert best_of_k(scores, correct, 2) == pytest.approx(0.5)
    assert best_of_k(scores, correct, 2, "optimistic") == pytest.approx(2 / 3)
    assert best_of_k(scores, correct, 2, "pessimistic") == pytest.approx(1 / 3)


def test_equal_scores_are_chance_and_perfect_ones_the_oracle():
    correct = [True, False, False, True, False]
    assert best_of_curve([0.5] * 5, correct) == pytest.approx([0.4] * 5)
    misses = [comb(3, k) / comb(5, k) for k in range(1, 6)]
    assert oracle_curve(correct) == pytest.approx([1 - miss for miss in misses])
    assert best_of_curve(correct, correct, "pessimistic") == pytest.approx(oracle_curve(correct))


@pytest.mark.parametrize(
    ("scores", "uniform"),
    [
        ([0.1 + 0.2, 0.3], 0.5),
        ([0.3, 0.1 + 0.2], 0.5),
        (
            [float(np.mean([0.1, 0.7, 0.3])), float(np.mean([0.3, 0.1, 0.7]))],
            0.5,
        ),  # the same logits in another order
        ([1e12 + 1, 1e12], 0.5),
        ([1.0, 1.0 + 1e-8], 0.0),
        ([-1e-8, 0.0], 0.0),
        ([float("-inf"), float("-inf")], 0.5),
        ([float("inf"), 1e300], 1.0),
        # each is near its neighbour, so all five are one group
        ([1 + 2e-9, 1.0, 1 + 5e-10, 1 + 1e-9, 1 + 1.5e-9], 0.2),
    ],
)
def test_scores_that_differ_in_the_last_bits_are_tied(scores, uniform):
    correct = [True] + [False] * (len(scores) - 1)
    assert best_of_k(scores, correct, len(scores)) == pytest.approx(uniform)
    if len(scores) == 2 and max(map(abs, scores)) < 1e15:
        answers = weighted_best_of_k(["x", "y"], correct, 2, scores)
        assert answers.value == pytest.approx(uniform)


def test_thousands_of_candidates_neither_overflow_nor_leave_the_unit_interval():
    rng = np.random.default_rng(0)
    correct = (rng.random(20_000) < 0.3).tolist()
    scores = rng.integers(0, 9, 20_000).tolist()
    for k in (1, 500, 19_999, 20_000):
        low, middle, high = (
            best_of_k(scores, correct, k, ties) for ties in ("pessimistic", "uniform", "optimistic")
        )
        assert 0 <= low <= middle + 1e-12
        assert middle <= high + 1e-12 <= 1 + 1e-12
    assert best_of_k(scores, correct, 1) == pytest.approx(np.mean(correct))


def test_minus_infinity_comes_last():
    assert best_of_k([float("-inf"), 0.0], [True, False], 2) == 0
    assert best_of_k([float("-inf"), 0.0], [True, False], 1) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("scores", "correct", "k", "ties", "error", "text"),
    [
        ([0.1, float("nan")], [True, False], 1, "uniform", DataError, "1 of 2 scores are NaN"),
        ([0.1], [True, False], 1, "uniform", DataError, "as many scores as marks"),
        (["high"], [True], 1, "uniform", DataError, "numbers as scores"),
        ([0.1], [None], 1, "uniform", DataError, "correct, True, or not"),
        ([0.1, 0.2], [True, False], 3, "uniform", ConfigError, "k=3 of 2 candidates"),
        ([0.1, 0.2], [True, False], 0, "uniform", ConfigError, "k=0 of 2 candidates"),
        ([0.1, 0.2], [True, False], True, "uniform", ConfigError, "k=True"),
        ([0.1, 0.2], [True, False], 1, "lucky", ConfigError, "ties='lucky'"),
    ],
)
def test_wrong_input_is_refused_in_words(scores, correct, k, ties, error, text):
    with pytest.raises(error, match=text):
        best_of_k(scores, correct, k, ties)


def test_a_set_is_the_mean_of_its_problems():
    counts = count_votes(check(*drawn(9, 4, 8, seed=2)))
    found = best_of_set(counts, BARE)
    scores = counts.accepted / counts.samples
    for k in found.sizes:
        of_problems = [
            float(
                by_hand(
                    scores[counts.question == q].tolist(),
                    counts.label[counts.question == q].tolist(),
                    k,
                    "uniform",
                )
            )
            for q in range(9)
        ]
        assert found.curves["uniform"][k - 1].value == pytest.approx(np.mean(of_problems))
    assert found.curves["random"][2].value == pytest.approx(counts.label.mean())
    assert found.curves["oracle"][0].value == pytest.approx(counts.label.mean())
    for low, middle, high in zip(
        *(found.curves[t] for t in ("pessimistic", "uniform", "optimistic")), strict=True
    ):
        assert low.value <= middle.value + 1e-12 <= high.value + 2e-12


def test_problems_with_few_candidates_are_left_out_and_counted():
    rows = [
        (f"{q}{n}", n == 0, q, "TF")
        for q, number in (("a", 3), ("b", 3), ("c", 2), ("d", 1))
        for n in range(number)
    ]
    counts = counted(*rows)
    found = best_of_set(counts, BARE, at_least=3)
    assert (found.problems, found.left_out, found.candidates, list(found.sizes)) == (2, 2, (3, 3), [1, 2, 3])
    assert best_of_set(counts, BARE).left_out == 1
    with pytest.raises(DataError, match="no question has 4"):
        best_of_set(counts, BARE, at_least=4)
    with pytest.raises(DataError, match="no question has 2"):
        best_of_set(counted(("a", True, "q", "T"), ("b", True, "r", "T")), BARE)


def test_intervals_are_over_problems():
    counts = count_votes(check(*drawn(30, 3, 4)))
    curve = best_of_set(counts, Intervals(flips=500)).curves["uniform"]
    assert all(one.low < one.value < one.high for one in curve)
    # k = 1 is the mean of 30 shares of right proofs: 2 standard errors are about as wide
    shares = [counts.label[counts.question == q].mean() for q in range(30)]
    assert curve[0].high - curve[0].low == pytest.approx(2 * 1.96 * np.std(shares) / 30**0.5, rel=0.2)


def test_scores_are_votes_logits_or_ones_own():
    pairs = [pair("a", True), pair("b", False)]
    given = [*votes("a", "TN", logit=2.0), *votes("b", "F", logit=-1.0)]
    counts = count_votes(check(pairs, given))
    assert scores_of(counts)[0] == pytest.approx([0.5, 0.0])
    assert scores_of(counts, "logit")[0] == pytest.approx([2.0, -1.0])
    assert scores_of(counts, {"a": 1, "b": float("-inf"), "c": 5}) == (pytest.approx([1, float("-inf")]), 1)
    with pytest.raises(DataError, match="no score is given for 1 pair, 'b' the first"):
        scores_of(counts, {"a": 1.0})
    with pytest.raises(DataError, match="NaN"):
        scores_of(counts, {"a": float("nan"), "b": 1.0})
    with pytest.raises(ConfigError, match="scores are votes, logit"):
        scores_of(counts, "charm")
    with pytest.raises(DataError, match="no vote has a logit"):
        scores_of(counted(("a", True, "q", "T")), "logit")
    mixed = count_votes(check(pairs, [*votes("a", "T", logit=2.0), *votes("b", "F")]))
    assert scores_of(mixed, "logit")[1] == 1
