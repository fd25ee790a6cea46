"""The benchmark of coverage, with few repetitions: a method that covers 85 % at five questions fails."""

from __future__ import annotations

import numpy as np
import pytest
from interval_coverage import coverage, draw, false_positives


@pytest.mark.parametrize(("design", "questions", "accuracy"), [("even", 5, 0.67), ("uneven", 18, 0.92)])
def test_intervals_of_95_percent_hold_about_as_often(design, questions, accuracy):
    found = coverage(design, questions, accuracy, 150)
    # 92 % and its standard error of 2.2 points; 83 % of BCa at five questions would not pass
    for name in ("accuracy", "f1", "difference of accuracy"):
        held, known = found[name]
        assert held > 0.88, name
        assert known > 0.9, name
    assert found["accuracy (BCa)"][0] < found["accuracy"][0]


@pytest.mark.parametrize(("design", "questions"), [("uneven", 10), ("one large", 30)])
def test_tests_of_two_like_verifiers_err_about_as_often_as_stated(design, questions):
    for at_5, at_1 in false_positives(design, questions, 0.67, 300).values():
        assert at_5 < 0.09
        assert at_1 < 0.035


def test_the_simulated_votes_of_a_question_are_correlated_as_stated():
    one, two = draw(np.random.default_rng(0), "even", 20_000, 0.67)
    right = [counts.right[counts.label & (np.diff(counts.question, prepend=-1) > 0)] for counts in (one, two)]
    # of one proof: accuracy .67, variance p (1 - p) (1 + 7 * 0.25) / 8; of two verifiers, the common 1/7
    assert right[0].mean() == pytest.approx(0.67, abs=0.01)
    assert right[0].var() == pytest.approx(0.67 * 0.33 * (1 + 7 * 0.25) / 8, rel=0.03)
    assert np.cov(*right)[0, 1] == pytest.approx(0.67 * 0.33 / 7, rel=0.1)
