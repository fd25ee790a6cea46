"""Exact bounds of an agreement, against scipy's, integers and the paper's numbers."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from pv_data.audit import interval, lower_bound, upper_bound
from pv_rl.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("agree", "checked", "bound"), [(27, 30, 0.7907), (14, 15, 0.7644), (373, 396, 0.9238), (30, 30, 0.9261)]
)
def test_the_papers_counts_have_the_bounds_that_it_implies(agree: int, checked: int, bound: float):
    assert lower_bound(agree, checked) == pytest.approx(bound, abs=5e-5)


def test_all_of_n_is_the_nth_root_of_the_risk():
    assert lower_bound(2, 2, 0.96) == pytest.approx(0.2)  # p^2 = 0.04
    assert lower_bound(3, 3, 0.936) == pytest.approx(0.4)  # p^3 = 0.064


def test_the_bound_is_where_the_counts_have_the_stated_chance():
    p = lower_bound(27, 30)
    assert sum(comb(30, k) * p**k * (1 - p) ** (30 - k) for k in range(27, 31)) == pytest.approx(0.10)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.99])
def test_one_and_two_sided_bounds_are_those_of_scipy(confidence: float):
    for checked in (1, 7, 30, 396):
        for agree in range(0, checked + 1, max(1, checked // 7)):
            greater = binomtest(agree, checked, alternative="greater").proportion_ci(
                confidence, method="exact"
            )
            less = binomtest(agree, checked, alternative="less").proportion_ci(confidence, method="exact")
            both = binomtest(agree, checked).proportion_ci(confidence, method="exact")
            assert lower_bound(agree, checked, confidence) == pytest.approx(greater.low, abs=1e-9)
            assert upper_bound(agree, checked, confidence) == pytest.approx(less.high, abs=1e-9)
            assert interval(agree, checked, confidence) == pytest.approx((both.low, both.high), abs=1e-9)


def test_nothing_agreed_and_nothing_checked_prove_nothing():
    assert (lower_bound(0, 30), upper_bound(30, 30)) == (0.0, 1.0)
    assert (lower_bound(0, 0), upper_bound(0, 0)) == (0.0, 1.0)
    assert lower_bound(0, 0, population=9) == 0.0
    assert upper_bound(0, 0, population=9) == 1.0


def _fewest(agree: int, checked: int, population: int, miss: float) -> int:
    """By trying every K, with whole numbers."""
    ways = comb(population, checked)
    for good in range(population + 1):
        tail = sum(comb(good, k) * comb(population - good, checked - k) for k in range(agree, checked + 1))
        if tail > miss * ways:
            return good
    raise AssertionError


def test_the_finite_bound_is_that_of_trying_every_population():
    for population, checked in [(1, 1), (4, 2), (15, 6), (31, 30), (40, 40), (60, 9)]:
        for agree in range(checked + 1):
            for confidence in (0.6, 0.9, 0.99):
                low = _fewest(agree, checked, population, 1 - confidence)
                high = population - _fewest(checked - agree, checked, population, 1 - confidence)
                assert lower_bound(agree, checked, confidence, population=population) == low / population
                assert upper_bound(agree, checked, confidence, population=population) == high / population


def test_two_of_two_checked_of_four_leave_three_by_hand():
    assert lower_bound(2, 2, 0.8, population=4) == 0.75  # K = 2: 1/6 is below 0.2; K = 3: 3/6 is not


def test_a_slice_that_was_read_whole_is_known():
    assert lower_bound(27, 30, population=30) == 0.9
    assert upper_bound(27, 30, population=30) == 0.9


def test_an_endless_population_is_the_limit_of_finite_ones():
    assert lower_bound(27, 30, population=10**7) == pytest.approx(lower_bound(27, 30), abs=1e-5)
    assert lower_bound(27, 30, population=600) > lower_bound(27, 30)


@pytest.mark.parametrize("population", [None, 80])
def test_the_bound_is_above_the_truth_in_at_most_the_stated_part(population: int | None):
    bounds = [lower_bound(agree, 20, population=population) for agree in range(21)]
    for good in range(1, 80):
        p, wrong = good / 80, 0.0
        for agree in range(21):
            if population is None:
                chance = comb(20, agree) * p**agree * (1 - p) ** (20 - agree)
            else:
                chance = comb(good, agree) * comb(80 - good, 20 - agree) / comb(80, 20)
            wrong += chance * (bounds[agree] > p + 1e-12)
        assert wrong <= 0.10 + 1e-12


def test_numpys_counts_are_counts():
    assert lower_bound(np.int64(27), np.int32(30)) == lower_bound(27, 30)  # type: ignore[arg-type]
    assert lower_bound(14, 15) == pytest.approx(beta.ppf(0.1, 14, 2))


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((31, 30), "agree is 31 of 30 checked"),
        ((-1, 30), "agree is -1"),
        ((True, 30), "agree is True"),
        ((27.0, 30), "agree is 27.0"),
        (("27", 30), "agree is '27'"),
        ((0, None), "checked is None"),
    ],
)
def test_counts_that_do_not_fit_are_refused(counts: tuple, says: str):
    with pytest.raises(DataError, match=says):
        lower_bound(*counts)
    with pytest.raises(DataError):
        upper_bound(*counts)


def test_more_checked_than_there_are_is_refused():
    with pytest.raises(DataError, match="checked is 30 and population 20"):
        lower_bound(27, 30, population=20)


@pytest.mark.parametrize("confidence", [0, 1, 90, -0.1, float("nan"), float("inf"), "0.9", None, True])
def test_a_confidence_that_is_no_probability_is_refused(confidence: object):
    for bound in (lower_bound, upper_bound, interval):
        with pytest.raises(ConfigError, match="confidence is"):
            bound(27, 30, confidence)  # type: ignore[arg-type]
