"""Majority votes, of verdicts and for answers, against every subset."""

from __future__ import annotations

import random
from itertools import combinations, product
from statistics import mean

import pytest
from evaluate_cases import counted
from scipy.stats import hypergeom

from pv_eval import best_of_k, weighted_best_of_k
from pv_eval.majority import majority_right, majority_verdicts, right_by_majority
from pv_rl.errors import ConfigError, DataError


def by_hand(letters: str, k: int, tie: float) -> float:
    """Of a right proof."""
    worth = []
    for subset in combinations(letters, k):
        yes, no = subset.count("T"), subset.count("F")
        worth.append(float(yes > no) if yes != no else tie if yes else 0.0)
    return mean(worth)


@pytest.mark.parametrize(("ties", "tie"), [("uniform", 0.5), ("optimistic", 1.0), ("pessimistic", 0.0)])
def test_it_equals_the_mean_over_all_subsets(ties, tie):
    for yes, no, none in product(range(4), range(4), range(3)):
        letters = "T" * yes + "F" * no + "N" * none
        for k in range(1, len(letters) + 1):
            assert right_by_majority(yes, no, none, k, ties) == pytest.approx(by_hand(letters, k, tie))


def test_the_example_of_the_docstring_and_the_label_turned():
    counts = counted(("a", True, "q", "TTF"), ("b", False, "r", "TTF"))
    assert majority_right(counts, 2) == pytest.approx([2 / 3, 1 / 3])
    assert majority_right(counts, 2, "optimistic") == pytest.approx([1, 2 / 3])
    assert majority_right(counts, 3) == pytest.approx([1, 0])


def test_one_vote_is_the_plain_accuracy():
    assert majority_right(counted(("a", True, "q", "TTFN")), 1) == pytest.approx([0.5])


def test_many_votes_do_not_overflow():
    assert right_by_majority(180, 100, 9, 151, "uniform") == pytest.approx(1, abs=1e-6)


def test_k_beyond_the_fewest_votes_is_refused():
    counts = counted(("a", True, "q", "TTF"), ("b", True, "r", "TT"))
    for k in (0, 3, True):
        with pytest.raises(ConfigError, match="k is 1 to 2, the fewest votes"):
            majority_right(counts, k)
    with pytest.raises(ConfigError, match="ties are uniform"):
        majority_right(counts, 1, "lucky")  # pyright: ignore[reportArgumentType]


def test_majority_verdicts_tell_a_tie_from_silence():
    verdicts, kinds = majority_verdicts(
        counted(("a", True, "q", "TTF"), ("b", True, "r", "TFN"), ("c", True, "s", "NN"))
    )
    assert verdicts == [True, None, None]
    assert kinds == {"decided": 1, "tied": 1, "no verdict": 1}


def test_weighted_votes_of_the_docstring():
    answers, correct = ["x", "x", "y"], [False, False, True]
    assert weighted_best_of_k(answers, correct, 3, [0.2, 0.2, 0.9]).value == 1
    assert weighted_best_of_k(answers, correct, 3).value == 0


@pytest.mark.parametrize("ties", ["uniform", "optimistic", "pessimistic"])
def test_weighted_votes_equal_every_subset(ties):
    rng = random.Random(3)
    for number in range(1, 8):
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
    truth = hypergeom(40, answers.count("x"), 9).sf(4)
    assert not found.exact
    assert 0 < found.standard_error < 0.01
    assert abs(found.value - truth) < 4 * found.standard_error


def test_sums_that_differ_in_the_last_bits_are_a_tie():
    found = weighted_best_of_k(["x", "x", "y"], [True, True, False], 3, [0.1, 0.2, 0.3])
    assert found.value == 0.5


def test_wrong_answers_are_refused():
    with pytest.raises(DataError, match="'x' is right in one place and wrong in another"):
        weighted_best_of_k(["x", "x"], [True, False], 1)
    with pytest.raises(DataError, match="2 answers, 1 mark "):
        weighted_best_of_k(["x", "x"], [True], 1)
    with pytest.raises(DataError, match="not finite"):
        weighted_best_of_k(["x"], [True], 1, [float("inf")])
    with pytest.raises(ConfigError, match="k=3 of 2"):
        weighted_best_of_k(["x", "x"], [True, True], 3)
