"""Votes for answers, weighted and not, against every subset."""

from __future__ import annotations

import random
from itertools import combinations
from statistics import mean

import pytest

from pv_eval import best_of_k, weighted_best_of_k
from pv_rl.errors import ConfigError, DataError


def test_the_example_of_the_docstring():
    answers, correct = ["x", "x", "y"], [False, False, True]
    assert weighted_best_of_k(answers, correct, 3, [0.2, 0.2, 0.9]).value == 1
    assert weighted_best_of_k(answers, correct, 3).value == 0


@pytest.mark.parametrize("ties", ["uniform", "optimistic", "pessimistic"])
def test_it_equals_every_subset(ties):
    rng = random.Random(3)
    for number in range(1, 10):
        answers = [rng.choice(["x", "y", "z", None]) for _ in range(number)]
        scores = [rng.randrange(4) for _ in range(number)]
        correct = [answer == "y" for answer in answers]
        for k in range(1, number + 1):
            worth = []
            for subset in combinations(range(number), k):
                named = [i for i in subset if answers[i] is not None]
                sums = {
                    a: sum(scores[i] for i in named if answers[i] == a) for a in {answers[i] for i in named}
                }
                best = [a == "y" for a in sums if sums[a] == max(sums.values())]
                by = {
                    "uniform": mean(best or [0]),
                    "optimistic": any(best),
                    "pessimistic": bool(best) and all(best),
                }
                worth.append(by[ties])
            found = weighted_best_of_k(answers, correct, k, scores, ties)
            assert found.value == pytest.approx(mean(worth))
            assert found.exact


def test_with_an_answer_each_it_is_best_of_k():
    scores, correct = [0.1, 0.5, 0.5, 0.9, 0.2], [True, False, True, False, True]
    for k in range(1, 6):
        assert weighted_best_of_k(list("abcde"), correct, k, scores).value == pytest.approx(
            best_of_k(scores, correct, k)
        )


def test_many_subsets_are_drawn_and_say_how_far_off_they_may_be():
    rng = random.Random(0)
    answers = [rng.choice("xy") for _ in range(40)]
    correct = [answer == "x" for answer in answers]
    # the same as two tied scores in best-of-1: k = 1 is exact, and its mean the share of x
    assert weighted_best_of_k(answers, correct, 1).value == pytest.approx(answers.count("x") / 40)
    found = weighted_best_of_k(answers, correct, 9, draws=4000)
    # hypergeometric: the majority of 9 of 40
    from scipy.stats import hypergeom

    truth = hypergeom(40, answers.count("x"), 9).sf(4)
    assert not found.exact
    assert 0 < found.standard_error < 0.01
    assert abs(found.value - truth) < 4 * found.standard_error


def test_sums_that_differ_in_the_last_bits_are_a_tie():
    found = weighted_best_of_k(["x", "x", "y"], [True, True, False], 3, [0.1, 0.2, 0.3])
    assert found.value == 0.5


def test_wrong_input_is_refused():
    with pytest.raises(DataError, match="'x' is right in one place and wrong in another"):
        weighted_best_of_k(["x", "x"], [True, False], 1)
    with pytest.raises(DataError, match="2 answers, 1 marks"):
        weighted_best_of_k(["x", "x"], [True], 1)
    with pytest.raises(DataError, match="not finite"):
        weighted_best_of_k(["x"], [True], 1, [float("inf")])
    with pytest.raises(ConfigError, match="k=3 of 2"):
        weighted_best_of_k(["x", "x"], [True, True], 3)
