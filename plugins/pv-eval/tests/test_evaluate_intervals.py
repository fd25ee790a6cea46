"""Cluster-t intervals: against scipy's, their coverage, and where they can say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluate_cases import counted, drawn
from scipy.special import stdtrit
from scipy.stats import ttest_1samp

from pv_eval import check
from pv_eval.counts import Sums, count_votes, ratio
from pv_eval.intervals import Intervals, cluster_t, estimate_all, jackknife
from pv_eval.metrics import METRICS, class_sums
from pv_rl.errors import ConfigError

MEAN = {"mean": lambda s: ratio(s["x"], s["one"])}


def sums_of(values: np.ndarray, sizes: np.ndarray | None = None) -> Sums:
    sizes = np.ones_like(values) if sizes is None else sizes
    return Sums(names=("x", "one"), table=np.column_stack([values, sizes]))


def interval(
    values: np.ndarray, sizes: np.ndarray | None = None, *, plain: bool = False, level: float = 0.95
):
    return estimate_all(sums_of(values, sizes), MEAN, Intervals(level=level), plain=plain)["mean"]


def test_the_example_of_the_docstring():
    one = interval(np.array([0.2, 0.4, 0.6]))
    reach = 4.302653 * math.sqrt(2 / 3 * 0.02) / 0.24
    assert one.value == pytest.approx(0.4)
    assert one.low == pytest.approx(1 / (1 + math.exp(math.log(1.5) + reach)), abs=1e-6)
    assert (round(one.low, 3), round(one.high, 3)) == (0.078, 0.841)
    assert "3 questions only" in one.note


def test_questions_of_equal_weight_have_the_classical_t_interval():
    values = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0, -5.0, 3.0, 5.0])
    mine, theirs = interval(values, plain=True), ttest_1samp(values, 0).confidence_interval()
    assert (mine.low, mine.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_degrees_of_freedom_are_those_of_the_questions_that_decide():
    # leave-one-out values 97 times 0 and three times 1, -1, 1: K = 100 * 3/9 but for the mean of 0.01
    values = np.r_[np.zeros(97), 1.0, -1.0, 1.0]
    error, freedom = jackknife(values)
    square = (values - 0.01) ** 2
    assert error == pytest.approx(math.sqrt(0.99 * square.sum()))
    assert freedom == pytest.approx(200 / (100 * (square**2).sum() / square.sum() ** 2 - 1))
    assert 6 < freedom < 6.3
    assert jackknife(np.tile([1.0, -1.0], 50)) == (pytest.approx(math.sqrt(99)), 99)
    few = counted(
        *((f"r{q}", True, f"r{q}", "TTTF" if q % 2 else "TTTT") for q in range(90)),
        *((f"w{q}", False, f"w{q}", "TFFF" if q % 2 else "TTTF") for q in range(4)),
    )
    one = estimate_all(class_sums(few), METRICS, Intervals())["balanced_accuracy"]
    assert "a few of the 94 questions decide it" in one.note


def test_pairs_of_one_question_are_left_out_together():
    alone = counted(*((f"{q}{p}", True, f"{q}{p}", "TF"[q % 2] * 4) for q in range(20) for p in range(5)))
    together = counted(*((f"{q}{p}", True, f"{q}", "TF"[q % 2] * 4) for q in range(20) for p in range(5)))
    reaches = []
    for counts in (alone, together):
        one = estimate_all(class_sums(counts), METRICS, Intervals())["accuracy"]
        reaches.append(math.log(one.high / (1 - one.high)))
    # standard errors of means of 100 and of 20 halves, by their t
    expected = (stdtrit(19, 0.975) / math.sqrt(19)) / (stdtrit(99, 0.975) / math.sqrt(99))
    assert reaches[1] / reaches[0] == pytest.approx(expected)


def test_intervals_are_the_same_each_time_and_narrower_at_a_lower_level():
    sums = class_sums(count_votes(check(*drawn(20, 3, 4))))
    one, other, narrow = (
        estimate_all(sums, METRICS, how)["accuracy"]
        for how in (Intervals(), Intervals(seed=4), Intervals(level=0.5))
    )
    assert one == other
    assert 0 < one.low < narrow.low < one.value < narrow.high < one.high < 1


def test_a_share_near_its_end_stays_below_one_and_a_number_above_one_is_no_share():
    one = interval(np.array([1.0] * 11 + [0.9]))
    assert 0.025 ** (1 / 12) < one.low < one.value < one.high < 1
    other = interval(np.array([1.0] * 11 + [1.3]))
    assert other.value - other.low == pytest.approx(other.high - other.value)


def test_a_number_from_minus_one_to_one_has_its_interval_on_the_scale_of_fisher():
    values = np.array([0.9, 0.5, 0.7])
    one = estimate_all(sums_of(values), MEAN, Intervals(), signed=True)["mean"]
    reach = 4.302653 * math.sqrt(0.04 / 3) / (1 - 0.7**2)
    assert (one.low, one.high) == (
        pytest.approx(math.tanh(math.atanh(0.7) - reach), abs=1e-6),
        pytest.approx(math.tanh(math.atanh(0.7) + reach), abs=1e-6),
    )
    without = np.array([0.9] + [1.0] * 9)  # a number is 1, and less without one of the questions
    for end in (
        cluster_t(1.0, without, Intervals(), alone=np.ones(10)).high,
        cluster_t(1.0, without, Intervals(), signed=True).high,
        -cluster_t(-1.0, -without, Intervals(), signed=True).low,
    ):
        assert end == 1
    sevenths = interval(np.full(12, sum([1 / 7] * 7)))
    assert sevenths.note == "exact (Clopper-Pearson) over 12 questions"


def test_all_or_none_right_has_an_exact_interval_over_questions():
    # 24 proofs of 12 questions: P(all right) = p^12 = 0.025 at the lower end
    counts = counted(*((f"p{n}", True, f"q{n // 2}", "TT") for n in range(24)))
    found = estimate_all(class_sums(counts), METRICS, Intervals())
    assert (found["accuracy"].low, found["accuracy"].high) == (pytest.approx(0.025 ** (1 / 12)), 1)
    assert found["accuracy"].note == "exact (Clopper-Pearson) over 12 questions"
    assert (found["missing"].low, found["missing"].high) == (0, pytest.approx(1 - 0.025 ** (1 / 12)))
    # only questions of the class count
    some = counted(
        *(
            (f"p{n}", n > 2, f"q{n}", "TF"[n % 2] * 2) if n > 2 else (f"p{n}", False, f"q{n}", "FF")
            for n in range(12)
        )
    )
    one = estimate_all(class_sums(some), METRICS, Intervals())["accuracy_wrong"]
    assert (one.value, one.low) == (1, pytest.approx(0.025 ** (1 / 3)))


def test_where_nothing_can_be_said_there_is_a_note_and_no_interval():
    counts = counted(("a", True, "q", "TF"), ("b", False, "q", "TF"))
    one = estimate_all(class_sums(counts), METRICS, Intervals())["accuracy"]
    assert (one.value, one.note) == (0.5, "one question only")
    assert math.isnan(one.low)
    one = interval(np.full(12, 0.5))
    assert math.isnan(one.high)
    assert "its error is unknown" in one.note
    rare = counted(("a", False, "q", "TF"), *((f"p{n}", True, f"q{n}", "TF"[n % 2] * 2) for n in range(12)))
    one = estimate_all(class_sums(rare), METRICS, Intervals())["accuracy_wrong"]
    assert one.value == 0.5
    assert "a class occurs in that one only" in one.note
    # 0.1 + 0.2 - 0.1 - 0.2 is not 0 in floats; the class is absent nevertheless
    sizes = np.array([0.1 + 0.2, 0, 0])
    one = estimate_all(sums_of(sizes / 2, sizes), MEAN, Intervals())["mean"]
    assert "that one only" in one.note


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match="take 100 or more, or 0"):
        Intervals(flips=50)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        Intervals(level=95)
