"""Metrics of grades and of first wrong steps: by hand, against scipy and scikit-learn, and against every subset."""

from __future__ import annotations

import math
import random
import time
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from pv_eval import Pair, Vote, best_of_curve, check
from pv_eval.checks import imply_labels
from pv_eval.graded import Scale, compare_grades, compare_with_first, evaluate_grades
from pv_eval.intervals import Intervals
from pv_eval.rank import rank_correlations
from pv_eval.steps import evaluate_steps
from pv_rl.errors import ConfigError, DataError

BARE = Intervals(flips=0)
SEVEN = Scale(grades=tuple(range(8)))


def graded(rows, full=7.0, field="grade"):
    """From (question, human, votes) to pairs and votes; None is a missing answer."""
    pairs, votes = [], []
    for n, (question, human, said, *proof) in enumerate(rows):
        truth = {field: human / full if field == "grade" else human}
        pairs.append(Pair(pair_id=f"p{n}", question_id=question, label=None, proof="".join(proof), **truth))
        for sample, one in enumerate(said):
            answer = {field: None if one is None else one / full if field == "grade" else one}
            votes.append(Vote(pair_id=f"p{n}", question_id=question, sample=sample, verdict=None, **answer))
    return pairs, votes


def values(metrics):
    return {name: one.value for name, one in metrics.items()}


def test_the_example_of_the_docstring():
    found = evaluate_grades(graded([("a", 7, [6]), ("a", 0, [0]), ("b", 3, [5])]), SEVEN, BARE)
    expected = {
        "mae": 1 / 7,
        "mae_points": 1,
        "rmse_points": (5 / 3) ** 0.5,
        "bias_points": 1 / 3,
        "qwk": 1 - (5 / 3) / (119 / 3 - 220 / 9),
        "score": 1 - 1 / 7,
        "exact": 1 / 3,
        "within_one": 2 / 3,
        "accuracy": 2 / 3,
        "balanced_accuracy": 1 / 2,
        "missing": 0,
    }
    assert values(found.of_votes) == pytest.approx(expected)
    assert values(found.of_means) == pytest.approx(
        expected | {"spearman": 1, "kendall": 1, "kendall_within": 1}
    )


def test_two_verifiers_by_hand():
    """Errors 2, 2, 1 and 1, 0, 1 points; the second grades no proof of d, and the first none of e."""
    first = graded([("a", 7, [5]), ("b", 0, [2]), ("c", 3, [4]), ("d", 1, [1]), ("e", 1, [None])])
    second = graded([("a", 7, [6]), ("b", 0, [0, 0]), ("c", 3, [4]), ("d", 1, [None]), ("e", 1, [1])])
    found = compare_grades(first, second, SEVEN)
    assert (found.pairs, found.questions, found.left_out) == (3, 3, 2)
    mae, error = found.differences["mae_points"], math.sqrt(1 / 3)
    assert mae.value == pytest.approx(-1)  # without each: -1, -0.5, -1.5; df 2, t 4.303
    assert (mae.low, mae.high) == pytest.approx((-1 - 4.302653 * error, -1 + 4.302653 * error))
    assert found.p["mae_points"] == pytest.approx(0.2254, abs=1e-4)  # t = 1.732, two-sided
    # E (y - x)^2: 3 and 2/3; D: 89/9 and 130/9 points^2
    assert found.differences["qwk"].value == pytest.approx(27 / 89 - 6 / 130)
    assert found.differences["exact"].value == pytest.approx(1 / 3)
    assert found.differences["within_one"].value == pytest.approx(2 / 3)
    back = compare_grades(second, first, SEVEN).differences["qwk"]
    assert (back.value, back.low) == (pytest.approx(-27 / 89 + 6 / 130), -found.differences["qwk"].high)


def test_verifiers_of_other_grades_or_proofs_are_not_compared():
    first, other = graded([("a", 7, [5]), ("b", 0, [2])]), graded([("a", 6, [5]), ("b", 0, [2])])
    named = [("one", *first, SEVEN), ("two", *other, SEVEN), ("three", *first, SEVEN)]
    compared, (reason,) = compare_with_first(named, BARE)
    assert [(one.first, one.second) for one in compared] == [("one", "three")]
    assert reason.startswith("two is not compared with one: the two sets differ in the label, the grade")
    with pytest.raises(
        DataError, match="differ in the label, the grade, the question or the weight of 1 pair"
    ):
        compare_grades(first, other, SEVEN)
    with pytest.raises(DataError, match="no pair is graded by both"):
        compare_grades(
            graded([("a", 7, [5]), ("b", 0, [None])]), graded([("a", 7, [None]), ("b", 0, [2])]), SEVEN
        )


def test_a_missing_grade_is_wrong_where_answers_are_counted_and_left_out_of_distances():
    rows = [("a", 7, [7, None]), ("a", 4, [4, 6]), ("b", 2, [None, None])]
    found = evaluate_grades(graded(rows), SEVEN, BARE)
    # votes with a grade: 7-7 (weight 1/2), 4-4 and 4-6 (1/2 each): MAE 2/3 of a point over 1.5 pairs
    each = values(found.of_votes)
    assert (each["mae_points"], each["bias_points"]) == pytest.approx((1 / 1.5, 1 / 1.5))
    assert (each["exact"], each["missing"], each["score"]) == pytest.approx(
        (1 / 3, 0.5, (0.5 + 0.5 + 0.5 * 5 / 7) / 3)
    )
    # means 7, 5 and none; 5 is one from 4
    mean = values(found.of_means)
    assert (mean["mae_points"], mean["exact"], mean["within_one"]) == pytest.approx((0.5, 1 / 3, 2 / 3))
    assert (mean["missing"], found.best_of.without_score) == (pytest.approx(1 / 3), 1)
    assert any("without a grade in any sample" in str(problem) for problem in found.problems)
    unequal = evaluate_grades(graded([("a", 7, [7]), ("b", 0, [3, 3, 3])]), SEVEN, BARE)
    assert unequal.of_votes["mae_points"].value == pytest.approx(1.5)  # a pair counts once


def test_they_equal_scipy_and_scikit_learn_with_ties():
    rng = random.Random(3)
    rows = []
    for n in range(60):
        human = rng.randrange(8)
        rows.append((f"q{n // 5}", human, [min(7, max(0, human + rng.randint(-3, 3))) for _ in range(4)]))
    found = evaluate_grades(graded(rows), SEVEN, BARE)
    human, mean = [row[1] for row in rows], [float(np.mean(row[2])) for row in rows]
    assert found.of_means["spearman"].value == pytest.approx(stats.spearmanr(human, mean)[0])
    assert found.of_means["kendall"].value == pytest.approx(stats.kendalltau(human, mean)[0])
    within = [stats.kendalltau(human[n : n + 5], mean[n : n + 5])[0] for n in range(0, 60, 5)]
    assert found.of_means["kendall_within"].value == pytest.approx(np.nanmean(within))
    table = np.zeros((8, 8))  # kappa of the table of grades, 1 - sum(w observed) / sum(w expected)
    np.add.at(table, (np.repeat(human, 4), np.concatenate([row[2] for row in rows])), 1 / 240)
    weights = np.subtract.outer(np.arange(8), np.arange(8)) ** 2
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    kappa = 1 - (weights * table).sum() / (weights * expected).sum()
    assert found.of_votes["qwk"].value == pytest.approx(kappa)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e90])
def test_weights_of_ranks_are_repetitions_with_each_question_left_out(scale):
    rng = np.random.default_rng(2)
    question, times = rng.permutation(np.arange(40) % 7), rng.integers(1, 4, 40)
    x = rng.integers(0, 4, 40) / 3
    y = np.round(x + rng.normal(size=40), 1)
    found = rank_correlations(question, scale * times, x, y, 7)

    def scipys(keep):
        one, other = (np.repeat(values[keep], times[keep]) for values in (x, y))
        return [pytest.approx(measure(one, other)[0]) for measure in (stats.spearmanr, stats.kendalltau)]

    assert [found.spearman, found.kendall] == scipys(x < 9)
    for q in range(7):
        assert [found.spearman_without[q], found.kendall_without[q]] == scipys(question != q)
        assert found.kendall_within[q] == scipys(question == q)[1]
    alone = rank_correlations(np.array([0, 1]), np.ones(2), np.array([1.0, 0]), np.array([3.0, 3]), 3)
    assert np.isnan([alone.spearman, alone.kendall, *alone.spearman_without, *alone.kendall_within]).all()


def test_a_pairs_weight_counts_in_every_number():
    pairs, votes = graded([("a", 7, [5]), ("b", 0, [0]), ("c", 3, [3])])
    twice = [*pairs, Pair(pair_id="again", question_id="a", label=None, grade=1.0)]
    more = [*votes, Vote(pair_id="again", question_id="a", sample=0, verdict=None, grade=5 / 7)]
    heavy = [Pair(pair_id="p0", question_id="a", label=None, grade=1.0, weight=2.0), *pairs[1:]]
    one = evaluate_grades((heavy, votes), SEVEN, BARE).of_means
    two = evaluate_grades((twice, more), SEVEN, BARE).of_means
    one.pop("kendall_within"), two.pop("kendall_within")
    assert values(one) == pytest.approx(values(two))


def test_grades_of_unequal_distance_and_a_lower_bar():
    scale = Scale(grades=(0, 1, 6, 7), accept=6)
    found = evaluate_grades(
        graded([("a", 6, [7]), ("b", 1, [0]), ("c", 6, [1]), ("d", 7, [6.5])]), scale, BARE
    )
    # within one is one allowed grade: 6 and 1 are neighbours; 6.5 is halfway and counts as 6
    assert found.of_votes["within_one"].value == 1
    assert found.of_votes["exact"].value == 0
    assert found.of_votes["accuracy"].value == 3 / 4
    assert found.accept == 6
    human, votes = np.array([6, 1, 6, 7.0]), np.array([7, 0, 1, 6.5])
    chance = np.mean([(x - y) ** 2 for x in human for y in votes])
    assert found.of_votes["qwk"].value == pytest.approx(1 - np.mean((human - votes) ** 2) / chance)


def test_floors_are_the_best_constants_and_have_kappa_zero():
    found = evaluate_grades(
        graded([("a", 7, [7]), ("a", 7, [6]), ("b", 0, [1]), ("b", 2, [2]), ("c", 3, [0])]), SEVEN, BARE
    )
    assert found.floor_points == pytest.approx({"mean": 19 / 5, "median": 3, "most frequent": 7})
    for constant in found.floors.values():
        assert constant["qwk"].value == 0
    assert found.floors["median"]["mae_points"].value == pytest.approx((4 + 4 + 3 + 1 + 0) / 5)
    assert found.floors["most frequent"]["exact"].value == pytest.approx(2 / 5)


def test_a_proof_with_several_gradings_is_kept_and_gives_the_spread_of_humans():
    rows = [
        ("a", 7, [7], "P"),
        ("a", 5, [7], " P "),
        ("a", 6, [7], "P"),
        ("b", 1, [0], "Q"),
        ("b", 1, [0], "Q"),
    ]
    pairs, votes = graded(rows)
    found = evaluate_grades((pairs, votes), SEVEN, BARE)
    assert (found.pairs, found.graded_twice) == (5, 2)
    # of P the six ordered couples differ by 2, 1, 1 on average 4/3; of Q by 0
    assert found.humans["mae_points"].value == pytest.approx((4 / 3 + 0) / 2)
    assert found.humans["exact"].value == pytest.approx(1 / 2)
    assert any("another grade; each grading counts" in str(problem) for problem in found.problems)
    labels = [pair.label for pair in imply_labels(pairs)[0]]
    assert labels == [None, None, None, False, False]  # right by one grading, wrong by another
    assert [pair.label for pair in imply_labels(pairs, 5 / 7)[0]] == [True, True, True, False, False]
    known = [
        Pair(pair_id="x", question_id="q", label=None, grade=1.0),
        Pair(pair_id="y", question_id="q", label=True),
    ]
    assert imply_labels(known) == (known, ())


def test_best_of_k_by_grade_equals_every_subset():
    rng = random.Random(5)
    for _ in range(20):
        number = rng.randint(1, 6)
        scores = [rng.randrange(3) for _ in range(number)]
        worth = [rng.choice([0, 0.5, 3, 7]) for _ in range(number)]
        picks = {"uniform": lambda tied: sum(tied) / len(tied), "optimistic": max, "pessimistic": min}
        for ties, pick in picks.items():
            curve = best_of_curve(scores, worth, ties)
            for k in range(1, number + 1):
                of_each = [
                    pick([worth[i] for i in subset if scores[i] == max(scores[j] for j in subset)])
                    for subset in combinations(range(number), k)
                ]
                assert curve[k - 1] == pytest.approx(np.mean(of_each))


def test_best_of_k_picks_by_the_mean_grade_and_reports_the_humans():
    rows = [
        ("a", 7, [5, 7]),
        ("a", 2, [6, 6]),
        ("a", 0, [1, None]),
        ("b", 3, [3, 3]),
        ("b", 7, [7, 6]),
        ("b", 1, [0, 0]),
    ]
    found = evaluate_grades(graded(rows), SEVEN, BARE)
    # a: the first two tie at 6: of three the picked one has (7 + 2)/2 points; b: 7
    assert found.best_of.curves["uniform"][2].value == pytest.approx((4.5 + 7) / 2)
    assert found.best_of.curves["oracle"][2].value == 7
    assert found.best_of.curves["random"][0].value == pytest.approx((3 + 11 / 3) / 2)
    assert found.best_of_full.curves["uniform"][2].value == pytest.approx(0.75)


def test_first_wrong_steps_by_hand():
    found = evaluate_steps(graded([("a", 3, [3]), ("a", 0, [0]), ("b", 2, [1])], field="first_error"), BARE)
    assert values(found.of_votes) == pytest.approx(
        {"exact": 2 / 3, "within_one": 1, "exact_wrong": 1 / 2, "exact_right": 1, "f1": 2 / 3}
        | {"found": 1, "accuracy": 1, "missing": 0}
    )
    assert values(found.of_votes) == values(found.of_most)
    assert (found.floor["f1"].value, found.floor["exact_right"].value, found.floor["accuracy"].value) == (
        0,
        1,
        1 / 3,
    )
    rows = [("a", 3, [3, 3, 2]), ("a", 0, [0, 1, None]), ("b", 2, [None, None, None]), ("b", 1, [0, 2, 2])]
    found = evaluate_steps(graded(rows, field="first_error"), BARE)
    # most: 3 exact; 0 and 1 tie, so half; missing; 2, one beside 1
    assert values(found.of_most) == pytest.approx(
        {"exact": 1.5 / 4, "within_one": 2.5 / 4, "exact_wrong": 1 / 3, "exact_right": 1 / 2, "f1": 0.4}
        | {"found": 2 / 3, "accuracy": 2.5 / 4, "missing": 1 / 4}
    )
    assert found.of_votes["missing"].value == pytest.approx(4 / 12)
    # "none" is not one beside step 1
    assert found.of_votes["within_one"].value == pytest.approx((1 + 1 / 3 + 0 + 2 / 3) / 4)
    assert found.of_votes["exact_wrong"].value == pytest.approx((2 / 3) / 3)


def test_a_set_without_the_truth_is_refused_and_labels_do_not_matter():
    pairs, votes = graded([("a", 7, [6]), ("b", 0, [0])])
    assert (
        evaluate_grades(([*pairs, Pair(pair_id="x", question_id="a", label=True)], votes), SEVEN, BARE).pairs
        == 2
    )
    with pytest.raises(DataError, match="no pair is left that has a first wrong step"):
        evaluate_steps((pairs, votes), BARE)
    with pytest.raises(DataError, match="no pair is left that has a label"):
        check(pairs, votes).refuse()
    same = [Pair(pair_id=f"{n}", question_id="q", label=None, proof="P", first_error=n) for n in (1, 2)]
    answers = [
        Vote(pair_id=one.pair_id, question_id="q", sample=0, verdict=None, first_error=1) for one in same
    ]
    with pytest.raises(DataError, match="another first wrong step"):
        evaluate_steps((same, answers), BARE)
    for wrong in ((0,), (1, 0), (-1, 1), (0, 10**400)):
        with pytest.raises(ConfigError):
            Scale(grades=wrong)
    with pytest.raises(ConfigError):
        Scale(grades=(0, 1), accept=2)


def test_numbers_do_not_depend_on_the_order_of_rows():
    rows = [("a", 7, [6, 2]), ("a", 0, [0, 3]), ("b", 3, [5, None])]
    first = values(evaluate_grades(graded(rows), SEVEN, BARE).of_means)
    for other in permutations(rows):
        assert values(evaluate_grades(graded(other), SEVEN, BARE).of_means) == pytest.approx(first)


def test_intervals_of_few_questions_have_possible_values_only():
    rows = [
        ("a", 7, [7]),
        ("a", 0, [0]),
        ("b", 3, [5]),
        ("b", 7, [7]),
        ("c", 1, [1]),
        ("c", 6, [6]),
        ("d", 4, [2]),
    ]
    found = evaluate_grades(graded(rows), SEVEN)
    ends = {name: (one.low, one.high) for name, one in found.of_means.items()}
    ends["best"] = (found.best_of.curves["uniform"][0].low, found.best_of.curves["uniform"][0].high)
    low = {"qwk": -1, "bias_points": -7, "spearman": -1, "kendall": -1}
    high = {"mae_points": 7, "rmse_points": 7, "bias_points": 7, "best": 7}
    for name, (one, other) in ends.items():
        if one == one:
            assert low.get(name, 0) <= one < other <= high.get(name, 1), name
    assert ends["mae_points"] == pytest.approx([7 * end for end in ends["mae"]])
    assert all(ends[name][0] == ends[name][0] for name in low)


def test_intervals_hold_the_number_and_a_thousand_pairs_take_a_second():
    rng = np.random.default_rng(0)
    human = rng.integers(0, 8, 1000)
    noisy = np.clip(np.round(human[:, None] + rng.normal(0, 2, (1000, 8))), 0, 7)
    rows = [(f"q{n // 5}", int(human[n]), noisy[n].tolist()) for n in range(1000)]
    given = graded(rows)
    before = time.process_time()
    found = evaluate_grades(given, SEVEN)
    assert time.process_time() - before < 3
    for metrics in (found.of_votes, found.of_means):
        assert all(one.low < one.value < one.high for name, one in metrics.items() if name != "missing")
