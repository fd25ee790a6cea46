"""Two verifiers: tests by hand, differences with the same draws."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from evaluate_cases import counted, drawn, made
from scipy.stats import ttest_1samp

from pv_eval import check, compare
from pv_eval.counts import VoteCounts, count_votes
from pv_eval.intervals import Intervals
from pv_eval.paired import mcnemar, sign_flip
from pv_rl.errors import DataError


def test_mcnemar_by_hand():
    assert mcnemar(1, 6) == mcnemar(6, 1) == pytest.approx(2 * (1 + 7) / 2**7)
    assert mcnemar(2, 8) == pytest.approx(2 * (1 + 10 + 45) / 2**10)
    assert mcnemar(3, 3) == mcnemar(0, 0) == 1


@pytest.mark.parametrize("tenths", [(1, 2, 3), (1, 1, -2, 0), (3, 3, 3, -2, 1, 1, 2, -1), (-5, -3, 5, 3)])
def test_few_sign_flips_are_enumerated(tenths):
    sums = [abs(int(np.dot(signs, tenths))) for signs in product((1, -1), repeat=len(tenths))]
    by_hand = np.mean([one >= abs(sum(tenths)) for one in sums])
    # tenths are not binary fractions: sums in another order differ in the last bits, and are the same
    assert sign_flip(np.array(tenths) / 10) == pytest.approx(by_hand)


def test_many_sign_flips_are_drawn_and_never_give_zero():
    assert sign_flip(np.ones(100), flips=999) == pytest.approx(1 / 1000)
    assert sign_flip(np.tile([1.0, -1.0], 8)) == 1
    # a sum of 60 of 100 signs is 2 deviations from 50: P(|X - 50| >= 10) = 0.0569
    differences = np.r_[np.ones(60), -np.ones(40)]
    assert sign_flip(differences) == pytest.approx(0.0569, abs=0.01)
    assert sign_flip(differences) == sign_flip(differences) != sign_flip(differences, seed=1)


def test_sign_flips_are_studentised_within_each_class():
    # by hand, for each of the 8 signs: T of two classes with unequal weights
    moved = np.array([[0.5, 0.0], [0.3, 0.4], [0.0, -0.1]])
    weights = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    sizes = []
    for signs in product((1, -1), repeat=3):
        means = [sum(s * moved[q, c] for q, s in enumerate(signs)) / weights[:, c].sum() for c in (0, 1)]
        spread = sum(
            sum((s * moved[q, c] - weights[q, c] * means[c]) / weights[:, c].sum() for c in (0, 1)) ** 2
            for q, s in enumerate(signs)
        )
        sizes.append(abs(sum(means)) / math.sqrt(spread))
    assert sign_flip(moved, weights) == pytest.approx(np.mean([one >= sizes[0] - 1e-9 for one in sizes]))
    assert sign_flip(np.full(8, 0.25)) == 2 / 2**8  # no spread at all: only the same signs reach it


def better(wrong: list[tuple[int, int]], right: list[int]) -> tuple[VoteCounts, VoteCounts]:
    """Verifiers with 4 of 8 right votes, and with some more: (proofs, more) by question of wrong proofs, and of a right
    proof each."""
    rows: list[list[tuple[str, bool, str, str]]] = [[], []]
    questions = [(False, *one) for one in wrong] + [(True, 1, more) for more in right]
    for q, (label, proofs, more) in enumerate(questions):
        for proof in range(proofs):
            for of_one, votes in zip(rows, (4, 4 + more), strict=True):
                said = ("T" if label else "F") * votes + ("F" if label else "T") * (8 - votes)
                of_one.append((f"{q}-{proof}", label, f"q{q}", said))
    first, second = rows
    return counted(*first), counted(*second)


@pytest.mark.parametrize(
    ("wrong", "right", "test"),
    [
        ([(90, 2), *((1, 1 + n % 3) for n in range(12))], [1, -1] * 30, "sign flips"),
        ([(90, 2), *((1, 1 + n % 3) for n in range(10))], [1, -1] * 20, "sign flips"),
        ([(2, 2), (3, 2), (1, 3), (2, 2), (1, 1)], [1, -1] * 40, "cluster t"),
        ([(1, 2), (2, 3), (1, 2)], [1, 2] * 4, "cluster t"),
    ],
)
def test_p_of_balanced_accuracy_agrees_with_its_interval(wrong, right, test):
    first, second = better(wrong, right)
    found = compare(first, second)
    difference = found.differences["balanced_accuracy"]
    assert difference.low > 0.05
    assert found.tests["balanced_accuracy"] == test
    assert found.sign_flip_p["balanced_accuracy"] < 0.03
    # sums that are not studentised contradict it: 12.5 points, 10.8 to 14.2, beside p = .06
    moved = second.right - first.right
    sums = sum(
        np.bincount(first.question, moved * (first.label == label)) / (first.label == label).sum() / 2
        for label in (True, False)
    )
    signs = np.random.default_rng(0).choice([-1, 1], (10_000, len(sums)))
    if test == "sign flips":
        assert np.mean(np.abs(signs @ sums) >= sums.sum() - 1e-9) > 0.05


def test_few_questions_have_the_p_of_the_interval():
    first, second = better([], [2, 2, 1, 2, 1])
    found = compare(first, second)
    moved = np.array([2, 2, 1, 2, 1]) / 8
    assert found.tests["accuracy"] == "cluster t"
    assert found.sign_flip_p["accuracy"] == pytest.approx(
        ttest_1samp(moved, 0).pvalue
    )  # 0.002; signs give 0.0625
    many = compare(*better([], [2, 2, 1, 2, 1, 1, 1, 2]))
    assert (many.tests["accuracy"], many.sign_flip_p["accuracy"]) == ("sign flips", 2 / 2**8)
    same = compare(*better([], [2, 2, 2]))  # no spread, so no t and no interval
    assert (same.tests["accuracy"], same.sign_flip_p["accuracy"]) == ("sign flips", 0.25)
    assert "its error is unknown" in same.differences["accuracy"].note


def test_a_comparison_by_hand():
    first = counted(
        ("a", True, "q", "TTT"), ("b", False, "q", "TTF"), ("c", True, "r", "FFT"), ("d", True, "r", "TFN")
    )
    second = counted(
        ("a", True, "q", "TTT"), ("b", False, "q", "FFF"), ("c", True, "r", "TTT"), ("d", True, "r", "FFN")
    )
    found = compare(first, second)
    # first 3/3, 1/3, 1/3, 1/3; second 3/3, 3/3, 3/3, 0
    assert found.differences["accuracy"].value == pytest.approx((0 + 2 / 3 + 2 / 3 - 1 / 3) / 4)
    assert found.differences["accuracy_wrong"].value == pytest.approx(2 / 3)
    assert (found.only_first, found.only_second, found.ties) == (0, 2, (1, 0))
    assert found.mcnemar_p == pytest.approx(0.5)
    # mean right by question 2/6 and 1/6: 1/4, without each 1/6 and 2/6, so se = sqrt(1/2 * 2/144) = 1/12; t(1) of 3
    assert found.sign_flip_p["accuracy"] == pytest.approx(2 * (0.5 - math.atan(3) / math.pi))
    assert found.tests["accuracy"] == "cluster t"
    assert (found.pairs, found.questions, found.left_out) == (4, 2, 0)


def test_the_same_votes_differ_by_nothing():
    counts = count_votes(check(*drawn(10, 3, 4)))
    found = compare(counts, counts)
    assert all(one.value == 0 for one in found.differences.values())
    assert found.mcnemar_p == found.sign_flip_p["accuracy"] == found.sign_flip_p["balanced_accuracy"] == 1


def test_the_order_of_pairs_does_not_matter_and_pairs_of_one_alone_are_counted():
    pairs, given = drawn(12, 2, 4, seed=1)
    _, better = drawn(12, 2, 4, seed=2, skills=(0.8, 1.0))
    first, second = count_votes(check(pairs, given)), count_votes(check(pairs, better))
    turned = count_votes(check(pairs[::-1], better[::-1]))
    assert compare(first, turned) == compare(first, second)
    part = count_votes(
        check(pairs[4:], [vote for vote in better if vote.pair_id in {p.pair_id for p in pairs[4:]}])
    )
    found = compare(first, part)
    assert (found.pairs, found.left_out) == (20, 4)


def test_what_is_hard_for_both_cancels_in_the_interval_of_a_difference():
    rows = [(f"p{n}", True, f"q{n}", "T" * (n % 9) + "F" * (8 - n % 9)) for n in range(60)]
    more = [(*row[:3], ("T" + row[3])[:8] if n % 2 else row[3]) for n, row in enumerate(rows)]
    first, second = counted(*rows), counted(*more)
    difference = compare(first, second, Intervals()).differences["accuracy"]
    assert difference.low > 0
    assert difference.high - difference.low < 0.05  # each alone is about 0.16 wide


def test_different_labels_or_no_common_pair_are_refused():
    pairs, given = made(("a", True, "q", "TT"), ("b", False, "r", "TT"))
    first = count_votes(check(pairs, given))
    turned = count_votes(check([replace(pairs[0], label=False), pairs[1]], given))
    with pytest.raises(DataError, match="weight of 1 pair, "):
        compare(first, turned)
    with pytest.raises(DataError, match="no pair in common"):
        compare(first, counted(("z", True, "q", "TT")))


def test_without_a_class_balanced_accuracy_has_no_p():
    counts = counted(("a", True, "q", "TF"), ("b", True, "r", "TT"))
    found = compare(counts, counts)
    assert math.isnan(found.sign_flip_p["balanced_accuracy"])
    assert math.isnan(found.differences["balanced_accuracy"].value)
