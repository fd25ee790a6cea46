"""The paper's own tables: what adds up, and what does not. docs/concepts/audit.md quotes these numbers."""

from __future__ import annotations

import csv
import json
from typing import Any

import places
import pytest
from scipy.stats import binomtest

from pv_data.audit import (
    Mark,
    Rounds,
    decide,
    implied_bound,
    lower_bound,
    operating_characteristic,
    simultaneous_lower_bounds,
    slices_above,
    weigh,
)

PAPER = places.SHARED / "paper"
NEED = 0.9


def _table(name: str) -> list[dict[str, str]]:
    if not (PAPER / name).is_file():
        pytest.skip(f"the paper's table {name} is not beside the repository")
    with open(PAPER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _audit() -> list[dict[str, Any]]:
    """A row a slice. Agreements are the whole numbers behind the printed ratios of each class."""
    rows = []
    for row in _table("audit.csv"):
        classes = []
        for amount, ratio in ((row["pos_amount"], row["tp_ratio"]), (row["neg_amount"], row["tn_ratio"])):
            n, agree = int(amount), round(int(amount) * float(ratio))
            assert abs(agree / n - float(ratio)) <= 0.005 + 1e-9  # one whole number fits, up to rounding
            classes.append((agree, n))
        (tp, positive), (tn, negative) = classes
        rows.append(
            {
                "name": _name(row["dataset"], row["model"], row["method"]),
                "positive": (tp, positive),
                "negative": (tn, negative),
                "agree": tp + tn,
                "labelled": positive + negative,
                "printed": float(row["consistency"]),
                "accepted": row["accepted"] == "True",
                "checked": int(row["checked"]),
                "generated": int(row["generated"]),
            }
        )
    return rows


def _name(source: str, model: str, method: str) -> str:
    words = (source, model.replace("-0528", ""), method.replace("mask_replace", "mask"))
    return " ".join(word.lower().replace("-", "").replace(" ", "") for word in words)


def _accepted() -> list[dict[str, Any]]:
    return [row for row in _audit() if row["accepted"]]


def _sum(rows: list[dict[str, Any]], what: str) -> int:
    return sum(row[what] for row in rows)


def test_the_training_set_adds_up():
    groups: dict[str, int] = {}
    for row in _table("data_distribution.csv"):
        groups[row["group"]] = groups.get(row["group"], 0) + int(row["positive"]) + int(row["negative"])
    assert groups == {"llm_aided": 15_076, "human": 4_339, "auxiliary": 1_489}
    assert sum(groups.values()) == 20_904


def test_18_of_30_slices_are_accepted_with_a_mean_of_94_28_percent():
    rows = _audit()
    assert (len(rows), len(_accepted())) == (30, 18)
    assert sum(row["printed"] for row in _accepted()) / 18 == pytest.approx(0.9428, abs=5e-5)


def test_the_rule_at_least_90_percent_gives_the_same_18_slices():
    assert all((row["agree"] >= NEED * row["labelled"]) == row["accepted"] for row in _audit())
    assert min(row["agree"] / row["labelled"] for row in _accepted()) == pytest.approx(20 / 22)
    assert max(row["agree"] / row["labelled"] for row in _audit() if not row["accepted"]) == 21 / 24


def test_the_bounds_of_the_paper():
    assert lower_bound(27, 30) == pytest.approx(0.7907, abs=5e-5)  # its "above 79.1%" is this, rounded up
    assert lower_bound(27, 30) < 0.791
    rows = _accepted()
    assert (_sum(rows, "agree"), _sum(rows, "labelled")) == (373, 396)
    assert lower_bound(373, 396) == pytest.approx(0.924, abs=5e-4)
    worst = min(rows, key=lambda row: lower_bound(row["agree"], row["labelled"]))
    assert (worst["agree"], worst["labelled"]) == (14, 15)
    assert lower_bound(14, 15) == pytest.approx(0.764, abs=5e-4)


def test_six_accepted_slices_have_a_bound_below_the_one_stated_for_all():
    below = [row["name"] for row in _accepted() if lower_bound(row["agree"], row["labelled"]) < 0.7907]
    assert len(below) == 6


def test_the_bounds_that_hold_for_all_slices_together():
    rows = {row["name"]: (row["agree"], row["labelled"]) for row in _audit()}
    kept = {row["name"] for row in _accepted()}
    bounds = simultaneous_lower_bounds(rows)
    together = [bound for name, bound in bounds.items() if name in kept]
    assert (min(together), max(together)) == pytest.approx((0.582, 0.811), abs=5e-4)
    assert sum(bound > 0.7 for bound in together) == 4
    assert len(slices_above(rows, 0.7)) == 5
    assert slices_above(rows, 0.7) <= kept
    assert slices_above(rows, 0.75) == {"olympiadbench gpt5mini proof"}


def test_the_classes_have_bounds_of_their_own():
    rows = _accepted()
    found = {}
    for name in ("positive", "negative"):
        found[name] = (sum(row[name][0] for row in rows), sum(row[name][1] for row in rows))
    assert found == {"positive": (203, 213), "negative": (170, 183)}
    assert lower_bound(203, 213) == pytest.approx(0.929, abs=5e-4)
    assert lower_bound(170, 183) == pytest.approx(0.898, abs=5e-4)


def test_marks_made_from_the_table_give_the_same_numbers():
    marks = []
    for row in _audit():
        for label, (agree, n) in ((True, row["positive"]), (False, row["negative"])):
            for place in range(n):
                proof = f"{row['name']} {label} {place}"
                human = label if place < agree else not label
                marks.append(Mark(slice=row["name"], question=proof, proof=proof, label=label, human=human))
    accepted = {row["name"] for row in _accepted()}
    found = weigh(marks, pool=accepted)
    assert (found.pooled.agree, found.pooled.checked) == (373, 396)
    assert (found.classes["correct"].agree, found.classes["wrong"].agree) == (203, 170)
    # With 15 needed in place of 30, the decisions of the paper come out.
    rounds = Rounds(least=15)
    states = {row["name"]: decide(row["name"], marks, 500, rounds).verdict for row in _audit()}
    assert {name for name, verdict in states.items() if verdict == "accept"} == accepted
    # With 30, no slice is decided: none has as many labelled proofs with a mark.
    assert {decide(row["name"], marks, 1200).verdict for row in _audit()} == {"open"}


# What does not add up.


def test_three_printed_ratios_do_not_follow_from_their_classes():
    off = [
        (row["name"], row["agree"], row["labelled"], row["printed"])
        for row in _audit()
        if abs(row["agree"] / row["labelled"] - row["printed"]) > 0.005 + 1e-9
    ]
    assert off == [
        ("putnam gemini2.5flash rephrase", 21, 23, 0.92),
        ("putnam gpt5mini proof", 21, 23, 0.92),
        ("usamo deepseekv3.1 proof", 22, 23, 0.95),
    ]
    exact = sum(row["agree"] / row["labelled"] for row in _accepted()) / 18
    assert exact == pytest.approx(0.9425, abs=5e-5)
    pooled = _sum(_accepted(), "agree") / _sum(_accepted(), "labelled")
    assert pooled == pytest.approx(0.9419, abs=5e-5)


def test_the_training_set_has_28_rows_and_not_27():
    rows = _table("data_distribution.csv")
    counts = [sum(row["group"] == group for row in rows) for group in ("llm_aided", "human", "auxiliary")]
    assert counts == [19, 8, 1]


def test_five_accepted_slices_have_fewer_than_30_checked_and_all_have_fewer_that_count():
    assert sorted(row["checked"] for row in _accepted() if row["checked"] < 30) == [22, 25, 25, 26, 27]
    assert sum(row["checked"] < 30 for row in _audit()) == 10
    assert max(row["labelled"] for row in _audit()) == 28
    assert (_sum(_audit(), "checked"), _sum(_audit(), "labelled")) == (861, 657)
    assert (_sum(_accepted(), "checked"), _sum(_accepted(), "labelled")) == (521, 396)


def test_two_training_slices_were_not_audited_and_one_accepted_is_missing():
    training = {
        _name(row["source"], row["model"], row["method"])
        for row in _table("data_distribution.csv")
        if row["group"] == "llm_aided"
    }
    accepted = {row["name"] for row in _accepted()}
    assert training - accepted == {
        "olympiadbenchoe deepseekr1 rephrase",
        "olympiadbenchoe deepseekr1 solution",
    }
    assert accepted - training == {"putnam gpt5mini mask"}
    assert not training & {row["name"] for row in _audit() if not row["accepted"]}
    rows = [row for row in _table("data_distribution.csv") if row["source"] == "OlympiadBench-OE"]
    unaudited = [row for row in rows if row["group"] == "llm_aided"]
    assert sum(int(row["positive"]) + int(row["negative"]) for row in unaudited) == 1_639


def test_the_classes_were_not_audited_in_their_share_of_the_training_set():
    training = {
        _name(row["source"], row["model"], row["method"]): (int(row["positive"]), int(row["negative"]))
        for row in _table("data_distribution.csv")
    }
    shares = {}
    for row in _accepted():
        if row["name"] in training:
            positive, negative = training[row["name"]]
            shares[row["name"]] = (row["positive"][1] / row["labelled"], positive / (positive + negative))
    assert shares["olympiadbench deepseekr1 rephrase"] == pytest.approx((0.50, 0.90), abs=5e-3)
    assert shares["usamo deepseekr1 mask"] == pytest.approx((0.50, 0.11), abs=5e-3)
    # The agreement that the training set's own shares of slices and classes would give.
    right = total = 0.0
    for row in _accepted():
        for share, (agree, n) in zip(
            training.get(row["name"], ()), (row["positive"], row["negative"]), strict=False
        ):
            right, total = right + share * agree / n, total + share
    assert (right / total, total) == (pytest.approx(0.949, abs=5e-4), 13_437)
    assert binomtest(10, 20, 1175 / 1305).pvalue < 1e-4
    assert binomtest(11, 22, 80 / 715).pvalue < 1e-4


def test_the_checked_part_is_not_two_and_a_half_percent():
    # `generated` is the pilot of 5% of the questions, so a slice is about 20 times as large.
    parts = sorted(row["checked"] / (20 * row["generated"]) for row in _audit())
    assert (parts[0], parts[-1]) == pytest.approx((0.0124, 0.05), abs=5e-5)
    assert _sum(_audit(), "generated") == 1_975
    # and the slices that fail the first gate were read as far as the others
    first = [row["checked"] for row in _audit() if row["agree"] < 0.75 * row["labelled"]]
    assert sorted(first) == [22, 26, 27, 29, 30, 30]


def test_the_hours_of_reading_everything_are_1045_and_not_1200():
    rows = _table("data_distribution.csv")
    judged = [row for row in rows if row["group"] == "llm_aided"]
    everything, needed = (
        sum(int(row["positive"]) + int(row["negative"]) for row in some) for some in (rows, judged)
    )
    checked = _sum(_audit(), "checked")
    slow, fast = 90 / 864, 50 / 1000  # hours a proof, of the paper
    assert slow * 1000 == pytest.approx(104.2, abs=0.05)  # "about 100 hours per thousand"
    assert everything * fast == pytest.approx(1045.2, abs=0.05)  # "at least 1,200"
    assert needed * fast == pytest.approx(753.8, abs=0.05)
    assert checked * slow == pytest.approx(89.7, abs=0.05)  # "less than 100"
    assert checked * fast == pytest.approx(43.05, abs=0.05)
    # "more than 12 times": the hours above were counted at two speeds
    assert everything * fast / (checked * slow) == pytest.approx(11.7, abs=0.05)
    assert everything / checked == pytest.approx(24.3, abs=0.05)
    assert needed / checked == pytest.approx(17.5, abs=0.05)


def test_the_numbers_that_others_copied_from_the_paper_are_its_own():
    path = PAPER / "hyperparameters_and_claims.json"
    if not path.is_file():
        pytest.skip("the paper's claims are not beside the repository")
    claims = json.loads(path.read_text(encoding="utf-8"))["audit"]
    rounds = Rounds()
    assert rounds.fractions == tuple(claims["cumulative_fractions"])
    assert rounds.gates == tuple(claims["thresholds"])
    assert rounds.least == claims["min_checked"]


def test_what_the_rounds_do_by_how_the_30_is_read():
    # docs/concepts/audit.md: a slice of 600 proofs.
    every, last = Rounds().plan(600), Rounds(least_applies="last").plan(600)
    table = {
        rate: tuple(operating_characteristic(plan, rate).accept for plan in (every, last))
        for rate in (0.80, 0.90, 0.95)
    }
    assert table[0.80] == pytest.approx((0.123, 0.092), abs=5e-4)
    assert table[0.90] == pytest.approx((0.647, 0.518), abs=5e-4)
    assert table[0.95] == pytest.approx((0.939, 0.816), abs=5e-4)
    assert (implied_bound(every), implied_bound(last)) == pytest.approx((0.7907, 0.8040), abs=5e-5)
