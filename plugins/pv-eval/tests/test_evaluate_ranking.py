"""Threshold-free numbers against numbers by hand and against loops over pairs of proofs."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace

import numpy as np
import pytest
from evaluate_cases import counted, drawn, made, pair, votes

from pv_eval import check, evaluate
from pv_eval.counts import VoteCounts, count_votes
from pv_eval.intervals import Intervals, jackknife
from pv_eval.ranking import rank_by
from pv_rl.errors import ConfigError, DataError


def auroc(rows: list[tuple[float, bool, float, str]], *, within: bool = False) -> float:
    """By all couples of a right and a wrong proof; rows are (score, label, weight, question)."""
    total = ordered = 0.0
    for score, label, weight, question in rows:
        for other, wrong, of_other, same in rows:
            if label and not wrong and (not within or question == same):
                total += weight * of_other
                ordered += weight * of_other * (1 if score > other else 0.5 if score == other else 0)
    return ordered / total if total else math.nan


def average_precision(rows: list[tuple[float, bool, float, str]]) -> float:
    right = sum(weight for _, label, weight, _ in rows if label)
    found = 0.0
    for score, label, weight, _ in rows:
        if label and weight:
            above = [(w, y) for s, y, w, _ in rows if s >= score]
            found += weight / right * sum(w for w, y in above if y) / sum(w for w, _ in above)
    return found


def rows_of(counts: VoteCounts) -> list[tuple[float, bool, float, str]]:
    scores = (counts.accepted / counts.samples).tolist()
    return [
        (s, bool(one.label), one.weight, one.question_id) for s, one in zip(scores, counts.pairs, strict=True)
    ]


def test_the_example_of_the_docstring():
    found = rank_by(
        counted(
            ("a", True, "q", "TT"), ("b", True, "q", "TF"), ("c", False, "q", "TF"), ("d", False, "r", "FF")
        )
    )
    assert found.auroc.value == pytest.approx(0.875)
    assert found.average_precision.value == pytest.approx(0.5 + 0.5 * 2 / 3)
    # the lowest first: d alone, then b and c together: 1/2 * 1 + 1/2 * 2/3
    assert found.average_precision_wrong.value == pytest.approx(5 / 6)
    # in question q: a before c, b and c tied
    assert (found.auroc_within.value, found.within) == (pytest.approx(0.75), 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_loops_over_couples_and_its_interval_leaves_questions_out(weighted):
    pairs, given = drawn(8, 4, 5, seed=7)
    if weighted:
        rng = random.Random(0)
        pairs = [replace(one, weight=rng.choice([0.0, 0.5, 2.0])) for one in pairs]
    counts = count_votes(check(pairs, given))
    found, rows = rank_by(counts), rows_of(counts)
    assert found.auroc.value == pytest.approx(auroc(rows))
    assert found.auroc_within.value == pytest.approx(auroc(rows, within=True))
    assert found.average_precision.value == pytest.approx(average_precision(rows))
    turned = [(-score, not label, weight, question) for score, label, weight, question in rows]
    assert found.average_precision_wrong.value == pytest.approx(average_precision(turned))
    for name, measure in (("auroc", auroc), ("average_precision", average_precision)):
        left_out = [measure([row for row in rows if row[3] != f"q{q}"]) for q in range(8)]
        value, (error, _) = measure(rows), jackknife(np.array(left_out))
        one = getattr(found, name)
        # symmetric on the logit scale, 2 t se / (p (1 - p)) wide with at most 7 degrees of freedom
        width = math.log(one.high / (1 - one.high)) - math.log(one.low / (1 - one.low))
        assert width >= 2 * 2.3646 * error / (value * (1 - value)) * (1 - 1e-6)
        assert width <= 2 * 3.2 * error / (value * (1 - value))


def test_selective_accuracy_by_hand():
    # surest: a right (1), b wrong (1); then c right (1/2); then d, a tie, and e, without a verdict (0)
    counts = counted(
        ("a", True, "q", "TTTT"),
        ("b", False, "r", "TTTT"),
        ("c", False, "s", "FFFT"),
        ("d", True, "t", "TTFF"),
        ("e", True, "u", "NNNN"),
    )
    found = rank_by(counts)
    assert found.selective[1.0].value == pytest.approx(2.5 / 5)
    assert found.selective[0.5].value == pytest.approx((1 + 0.5) / 2.5)
    assert found.selective[0.8].value == pytest.approx((2 + 0.25) / 4)
    # a, b: slope 1/2 from 0; c: A = 0.2 + (c - 0.4); d, e: A = 0.4 + (c - 0.6)/4
    area = 0.4 * 0.5 + ((0.2 - 0.4) * math.log(0.6 / 0.4) + 0.2) + ((0.4 - 0.15) * math.log(1 / 0.6) + 0.1)
    assert found.selective_area.value == pytest.approx(area)
    assert found.curve[7] == (0.4, pytest.approx(0.5))
    assert found.curve[-1] == (1.0, pytest.approx(0.5))


def test_logits_rank_too_and_pairs_without_one_come_last():
    pairs = [pair("a", True), pair("b", False), pair("c", True, "r"), pair("d", False, "r")]
    given = [
        *votes("a", "TT", logit=3.0),
        *votes("b", "TF", logit=-2.0),
        *votes("c", "TN", "r"),
        *votes("d", "TN", "r", logit=0.5),
    ]
    found = evaluate(check(pairs, given)).ranking
    assert set(found) == {"votes", "logit"}
    logit = found["logit"]
    assert (logit.auroc.value, logit.without_score) == (
        pytest.approx(0.5),
        1,
    )  # a before b and d, c after both
    # |3| right, |-2| right, |0.5| wrong, none wrong
    assert [logit.selective[share].value for share in (0.5, 0.8, 1.0)] == pytest.approx([1, 2 / 3.2, 0.5])
    assert set(evaluate(check(*made(("a", True, "q", "T")))).ranking) == {"votes"}
    with pytest.raises(DataError, match="no vote has a logit"):
        rank_by(counted(("a", True, "q", "T")), by="logit")
    with pytest.raises(ConfigError, match="scores are votes, logit"):
        rank_by(counted(("a", True, "q", "T")), by="charm")


def test_sets_that_rank_nothing_have_no_number_and_a_note():
    one_class = rank_by(counted(("a", True, "q", "TF"), ("b", True, "r", "TT")))
    assert math.isnan(one_class.auroc.value)
    assert math.isnan(one_class.average_precision_wrong.value)
    assert (one_class.average_precision.value, one_class.within) == (1, 0)
    perfect = rank_by(counted(*((f"p{n}", n % 2 == 0, f"q{n // 2}", "FT"[n % 2 == 0]) for n in range(20))))
    assert (perfect.auroc.value, perfect.average_precision.value) == (1, 1)
    assert "its error is unknown" in perfect.auroc.note
    # in each of ten questions the right proof comes first: exact over these
    assert (perfect.auroc_within.value, perfect.auroc_within.low) == (1, pytest.approx(0.025**0.1))
    blind = rank_by(counted(*((f"p{n}", n % 3 == 0, f"q{n // 2}", "NN") for n in range(20))))
    assert (blind.auroc.value, blind.selective[0.5].value) == (0.5, 0)
    pairs, given = made(("a", True, "q", "TF"), ("b", False, "r", "TT"), ("c", False, "s", "FF"))
    weightless = count_votes(check([replace(one, weight=float(one.label is True)) for one in pairs], given))
    assert math.isnan(rank_by(weightless).auroc.value)
    alone = rank_by(counted(("a", True, "q", "T"), ("b", False, "q", "F")))
    assert (alone.auroc.value, alone.auroc.note) == (1, "one question only")


def test_scores_in_another_order_of_sums_are_tied():
    def logits(name: str, values: list[float]):
        return [replace(votes(name, "T", logit=v)[0], sample=n) for n, v in enumerate(values)]

    counts = count_votes(
        check(
            [pair("a", True), pair("b", False)], logits("a", [0.1, 0.7, 0.3]) + logits("b", [0.3, 0.1, 0.7])
        )
    )
    assert rank_by(counts, by="logit").auroc.value == 0.5


def test_a_thousand_pairs_take_less_than_a_second():
    counts = count_votes(check(*drawn(200, 5, 8)))
    start = time.process_time()
    rank_by(counts, Intervals())
    assert time.process_time() - start < 1
