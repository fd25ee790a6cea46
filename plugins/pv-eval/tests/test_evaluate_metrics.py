"""Metrics against numbers by hand and against a loop over single votes."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import combinations
from statistics import mean, stdev

import pytest
from evaluate_cases import counted, drawn, made, pair, votes

from pv_eval import check, evaluate
from pv_eval.counts import count_votes
from pv_eval.intervals import Intervals
from pv_eval.metrics import METRICS, class_sums, floors, sampling_error

BARE = Intervals(flips=0)


def measure(counts) -> dict[str, float]:
    total = class_sums(counts).total
    return {name: float(statistic(total)) for name, statistic in METRICS.items()}


def test_the_worked_example_of_the_docstring():
    found = measure(counted(("a", True, "q", "TTTF"), ("b", True, "q", "TFFN"), ("c", False, "r", "FFFT")))
    assert found["accuracy"] == pytest.approx(1.75 / 3)
    assert found["accuracy_right"] == pytest.approx(0.5)
    assert found["accuracy_wrong"] == pytest.approx(0.75)
    assert found["balanced_accuracy"] == pytest.approx(0.625)
    assert found["precision"] == pytest.approx(0.8)
    assert found["f1"] == pytest.approx(2 * 0.8 * 0.5 / 1.3)
    assert found["missing"] == pytest.approx(0.25 / 3)
    assert found["accuracy_of_always_true"] == pytest.approx(2 / 3)


def test_metrics_equal_a_loop_over_weighted_votes():
    pairs, given = drawn(12, 3, 5, seed=3)
    rng = random.Random(4)
    pairs = [
        pair(one.pair_id, one.label, one.question_id, weight=rng.choice([0.0, 0.5, 2.0])) for one in pairs
    ]
    given = [vote for vote in given if rng.random() < 0.8 or vote.sample == 0]  # unequal numbers of samples
    number = {one.pair_id: sum(vote.pair_id == one.pair_id for vote in given) for one in pairs}
    by_id = {one.pair_id: one for one in pairs}
    rows = [
        (by_id[vote.pair_id].label, vote.verdict, by_id[vote.pair_id].weight / number[vote.pair_id])
        for vote in given
    ]

    def mass(label: bool | None = None, verdict: object = "any") -> float:
        return math.fsum(
            w for y, v, w in rows if (label is None or y is label) and (verdict == "any" or v is verdict)
        )

    found = measure(count_votes(check(pairs, given)))
    right = mass(True, True) + mass(False, False)
    assert found["accuracy"] == pytest.approx(right / mass())
    assert found["accuracy_of_verdicts"] == pytest.approx(right / (mass() - mass(None, None)))
    precision, recall = mass(True, True) / mass(None, True), mass(True, True) / mass(True)
    assert found["precision"] == pytest.approx(precision)
    assert found["accuracy_right"] == pytest.approx(recall)
    assert found["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    precision, recall = mass(False, False) / mass(None, False), mass(False, False) / mass(False)
    assert found["precision_wrong"] == pytest.approx(precision)
    assert found["f1_wrong"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert found["missing"] == pytest.approx(mass(None, None) / mass())
    assert found["accepted"] == pytest.approx(mass(None, True) / mass())


def test_avg_at_k_is_the_mean_over_all_subsets_of_k_votes():
    said = {"a": (True, "TTFTN"), "b": (False, "FTTFF")}
    counts = counted(*((name, label, name, letters) for name, (label, letters) in said.items()))
    for k in range(1, 6):
        of_subsets = [
            mean(letter == "FT"[label] for letter in subset)
            for label, letters in said.values()
            for subset in combinations(letters, k)
        ]
        assert measure(counts)["accuracy"] == pytest.approx(mean(of_subsets))


def test_who_accepts_everything_is_at_half_by_balanced_accuracy():
    found = measure(counted(*((f"p{n}", n > 0, f"q{n}", "TTTT") for n in range(10))))
    assert found["accuracy"] == pytest.approx(0.9)
    assert found["balanced_accuracy"] == pytest.approx(0.5)
    assert found["accepted"] == 1


def test_floors_are_those_of_who_reads_nothing():
    # 3 right, 1 wrong; this verifier accepts 5 of 8 votes
    found = floors(
        counted(
            ("a", True, "q", "TT"), ("b", True, "r", "TF"), ("c", True, "s", "TN"), ("d", False, "t", "TF")
        )
    )
    accepts, rejects, coin, own, perfect = (
        found[name]
        for name in ("accepts everything", "rejects everything", "coin", "coin, own rate", "perfect")
    )
    assert (accepts["accuracy"], accepts["precision"], accepts["f1"]) == (0.75, 0.75, pytest.approx(6 / 7))
    assert (rejects["accuracy"], rejects["precision_wrong"], rejects["f1_wrong"]) == (
        0.25,
        0.25,
        pytest.approx(0.4),
    )
    assert math.isnan(accepts["precision_wrong"])
    assert math.isnan(rejects["precision"])
    assert (rejects["f1"], accepts["accepted"], rejects["accepted"]) == (0, 1, 0)
    assert found["majority class"] == accepts
    assert (coin["accuracy"], coin["precision"], coin["f1"]) == (0.5, 0.75, pytest.approx(0.6))
    # own rate 5/8: accuracy 3/4 * 5/8 + 1/4 * 3/8, F1 2 * 3/4 * 5/8 / (11/8)
    assert (own["accuracy"], own["f1"]) == (pytest.approx(18 / 32), pytest.approx(15 / 22))
    assert perfect["f1"] == perfect["f1_wrong"] == perfect["accuracy"] == 1
    assert all(one["balanced_accuracy"] == 0.5 for one in (accepts, rejects, coin, own))
    assert math.isnan(floors(counted(("a", True, "q", "T")))["coin"]["balanced_accuracy"])
    wrong = floors(counted(("a", False, "q", "T"), ("b", False, "r", "T"), ("c", True, "s", "T")))
    assert wrong["majority class"]["accuracy"] == pytest.approx(2 / 3)


def test_an_absent_class_gives_no_number_and_a_note():
    found = evaluate(
        check([pair("a", True), pair("b", True, "r")], votes("a", "TF") + votes("b", "TT", "r"))
    ).metrics
    for name in ("accuracy_wrong", "balanced_accuracy"):
        assert math.isnan(found[name].value)
        assert "undefined" in found[name].note
    assert found["accuracy"].value == pytest.approx(0.75)


def test_sampling_error_of_the_docstring_and_of_a_simulation():
    counts = counted(("a", True, "q", "TTFF"), ("b", True, "r", "TTTT"))
    assert sampling_error(counts, 4) == pytest.approx(math.sqrt(1 / 12) / 2)
    rng = random.Random(0)
    chances = [rng.random() for _ in range(40)]

    def sample() -> list[tuple[str, bool, str, str]]:
        return [
            (f"p{n}", True, f"q{n}", "".join("FT"[rng.random() < p] for _ in range(8)))
            for n, p in enumerate(chances)
        ]

    seen = [measure(counted(*sample()))["accuracy"] for _ in range(200)]
    said = mean(sampling_error(counted(*sample()), 8) for _ in range(20))
    assert said == pytest.approx(stdev(seen), rel=0.2)
    assert math.isnan(sampling_error(counted(("a", True, "q", "T")), 1))


def test_slices_are_the_metrics_of_their_pairs():
    pairs, given = drawn(8, 2, 4)
    sliced = [pair(one.pair_id, one.label, one.question_id, slice="ab"[n % 2]) for n, one in enumerate(pairs)]
    found = evaluate(check(sliced, given), BARE)
    assert [part.name for part in found.slices] == ["a", "b"]
    alone = [one for one in sliced if one.slice == "b"]
    names = {one.pair_id for one in alone}
    other = evaluate(check(alone, [vote for vote in given if vote.pair_id in names]), BARE)
    assert found.slices[1].pairs == 8
    assert {n: e.value for n, e in found.slices[1].metrics.items()} == pytest.approx(
        {n: e.value for n, e in other.metrics.items()}, nan_ok=True
    )


def test_the_largest_of_very_many_slices_have_a_line():
    rows = [(f"p{n}", n % 2 == 0, f"q{n}", "T") for n in range(62)]
    pairs, given = made(*rows)
    pairs = [replace(one, slice=f"s{max(n, 2):02}") for n, one in enumerate(pairs)]  # the first has three
    found = evaluate(check(pairs, given), BARE)
    assert [part.name for part in found.slices] == [f"s{n:02}" for n in range(2, 52)]
    assert [str(one) for one in found.problems] == ["10 slices without a line, beyond the 50 largest"]


def test_agreement_with_labels_counts_ties_as_a_category():
    found = evaluate(
        check(
            *made(
                ("a", True, "q", "TT"),
                ("b", False, "r", "FF"),
                ("c", False, "s", "TF"),
                ("d", True, "t", "TT"),
            )
        ),
        BARE,
    )
    # p_a = 3/4; q = (1/2, 3/8, 1/8): p_e = (1/4 + 15/64 + 7/64) / 2 = 19/64, AC1 = (3/4 - 19/64) / (45/64) = 29/45
    assert found.agreement.raw.value == pytest.approx(0.75)
    assert found.agreement.ac1.value == pytest.approx(29 / 45)
    # p_e of kappa: 1/2 * 1/2 + 1/2 * 1/4 = 3/8
    assert found.agreement.kappa.value == pytest.approx((3 / 4 - 3 / 8) / (5 / 8))
    assert found.majority_kinds == {"decided": 3, "tied": 1}


def test_agreement_of_one_question_has_no_interval():
    found = evaluate(check(*made(("a", True, "q", "TT"), ("b", False, "q", "TT")))).agreement
    assert (found.raw.value, found.raw.low, found.raw.high) == (0.5, None, None)
