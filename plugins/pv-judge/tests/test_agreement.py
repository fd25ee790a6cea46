"""Kappa and AC1: worked by hand, against a count over all pairs, and at their edges."""

from __future__ import annotations

import random

import pytest

from pv_judge.agreement import Estimate, ac1, agreement, kappa, raw_agreement, wilson

EVEN = [[20, 5], [10, 15]]
RARE = [[118, 5], [2, 0]]
THREE = [[10, 2, 1], [3, 20, 4], [0, 1, 9]]


def marks(counts):
    pairs = [(i, j) for i, row in enumerate(counts) for j, number in enumerate(row) for _ in range(number)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def test_even_categories_by_hand():
    # p_a = 35/50; kappa: p_e = 0.5 * 0.6 + 0.5 * 0.4; AC1: q = 55/100, p_e = 2 * 0.55 * 0.45
    assert raw_agreement(EVEN) == pytest.approx(0.7)
    assert kappa(EVEN) == pytest.approx(0.4)
    assert ac1(EVEN) == pytest.approx((0.7 - 0.495) / 0.505)


def test_a_rare_category_sinks_kappa_and_not_ac1():
    assert kappa(RARE) == pytest.approx(-0.0233918, abs=1e-6)
    assert ac1(RARE) == pytest.approx(0.9407763, abs=1e-6)


def test_three_categories_as_another_program_has_them():
    # irrCAC 0.4.4: conger() is Cohen's kappa for two raters
    assert kappa(THREE) == pytest.approx(0.64968, abs=5e-6)
    assert ac1(THREE) == pytest.approx(0.68005, abs=5e-6)


@pytest.mark.parametrize("categories", [2, 3, 5])
def test_chance_is_what_a_count_over_all_pairs_says(categories):
    rng = random.Random(categories)
    first = [rng.randrange(categories) for _ in range(40)]
    second = [a if rng.random() < 0.6 else rng.randrange(categories) for a in first]
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / 40
    of_kappa = sum(a == b for a in first for b in second) / 40**2
    both = first + second
    of_ac1 = sum(a != b for a in both for b in both) / 80**2 / (categories - 1)
    found = agreement(first, second, range(categories), resamples=10)
    assert found.raw.value == pytest.approx(observed)
    assert found.kappa.value == pytest.approx((observed - of_kappa) / (1 - of_kappa))
    assert found.ac1.value == pytest.approx((observed - of_ac1) / (1 - of_ac1))


def test_a_category_that_nobody_used_counts_for_ac1():
    two = agreement("aabb", "abbb", "ab").ac1.value  # q = 3/8, 5/8: p_e = 30/64
    three = agreement("aabb", "abbb", "abc").ac1.value  # the same over 2: 15/64
    assert two == pytest.approx((3 / 4 - 30 / 64) / (34 / 64))
    assert three == pytest.approx((3 / 4 - 15 / 64) / (49 / 64))


def test_full_agreement_is_one():
    found = agreement("aaab", "aaab", "ab", resamples=50)
    assert (found.raw.value, found.kappa.value, found.ac1.value) == (1, 1, 1)


def test_full_disagreement_of_even_raters_is_minus_one():
    # kappa: p_e = 0.5; AC1: q = 1/2, p_e = 0.5
    assert kappa([[0, 5], [5, 0]]) == pytest.approx(-1)
    assert ac1([[0, 5], [5, 0]]) == pytest.approx(-1)


def test_one_category_leaves_kappa_undefined_and_ac1_one():
    found = agreement(["fluent"] * 9, ["fluent"] * 9, ["fluent", "vetoed"])
    assert found.kappa == Estimate(value=None)
    assert found.ac1 == Estimate(value=1, low=1, high=1)


def test_nothing_to_compare_is_none():
    found = agreement([], [], ["fluent", "vetoed"])
    assert (found.number, found.raw.value, found.kappa.value, found.ac1.value) == (0, None, None, None)


def test_an_interval_is_near_the_one_of_a_normal_approximation():
    # irrCAC 0.4.4: kappa 0.1422 to 0.6578, AC1 0.1417 to 0.6702
    found = agreement(*marks(EVEN), (0, 1))
    assert (found.kappa.low, found.kappa.high) == pytest.approx((0.1422, 0.6578), abs=0.03)
    assert (found.ac1.low, found.ac1.high) == pytest.approx((0.1417, 0.6702), abs=0.03)


def test_the_same_seed_gives_the_same_interval():
    assert agreement(*marks(EVEN), (0, 1), seed=3) == agreement(*marks(EVEN), (0, 1), seed=3)
    assert agreement(*marks(EVEN), (0, 1), seed=3) != agreement(*marks(EVEN), (0, 1), seed=4)


def test_copies_of_a_thing_in_one_cluster_do_not_narrow_the_interval():
    first, second = marks(EVEN)
    once = agreement(first, second, (0, 1)).kappa
    clusters = [number for number in range(50) for _ in range(8)]
    copied = ([m for m in first for _ in range(8)], [m for m in second for _ in range(8)])
    together = agreement(*copied, (0, 1), clusters=clusters).kappa
    apart = agreement(*copied, (0, 1)).kappa
    assert together.value == apart.value == once.value
    assert together.high - together.low == pytest.approx(once.high - once.low, rel=0.1)
    assert apart.high - apart.low < 0.5 * (once.high - once.low)


def test_no_interval_where_too_many_resamples_have_no_value():
    # one anomalous thing of 20, and both see it: 36% of the resamples are without it, and kappa is undefined there
    found = agreement([1] + 19 * [0], [1] + 19 * [0], (0, 1))
    assert found.kappa == Estimate(value=1)


def test_marks_that_are_no_category_are_refused():
    with pytest.raises(ValueError, match="categories"):
        agreement("abc", "abb", "ab")
    with pytest.raises(ValueError, match="at least two"):
        agreement("aa", "aa", "a")
    with pytest.raises(ValueError, match="zip"):
        agreement("ab", "a", "ab")


def test_without_resamples_there_is_no_interval():
    found = agreement(*marks(EVEN), (0, 1), resamples=0)
    assert found.kappa == Estimate(value=pytest.approx(0.4))


def test_wilson_of_the_docstring_and_at_the_ends():
    found = wilson(9, 10)
    assert (found.value, found.low, found.high) == pytest.approx((0.9, 0.596, 0.982), abs=5e-4)
    assert (wilson(0, 5).low, wilson(5, 5).high) == pytest.approx((0, 1))
    assert wilson(0, 0) == Estimate(value=None)
