"""maj@k against every subset."""

from __future__ import annotations

from itertools import combinations, product
from statistics import mean

import pytest
from evaluate_cases import counted

from pv_eval.majority import majority_right, majority_verdicts, right_by_majority
from pv_rl.errors import ConfigError


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
