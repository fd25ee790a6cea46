"""Calibration and lengths, by hand and against loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from evaluate_cases import counted, drawn, pair, votes

from pv_eval import check
from pv_eval.calibration import calibration
from pv_eval.counts import count_votes
from pv_eval.intervals import Intervals
from pv_eval.metrics import KINDS, lengths
from pv_rl.errors import ConfigError

BARE = Intervals(flips=0)


def test_the_example_of_the_docstring():
    found = calibration(
        counted(
            ("a", True, "q", "TTTF"),
            ("b", True, "r", "T" * 7 + "FFF"),
            ("c", False, "s", "TTTF"),
            ("d", False, "t", "FF"),
        ),
        BARE,
    )
    assert found.ece.value == pytest.approx(0.05)
    assert found.brier.value == pytest.approx((0.0625 + 0.09 + 0.5625) / 4)
    assert [(one.low, one.pairs, round(one.right.value, 4)) for one in found.bins] == [
        (0.0, 1, 0.0),
        (0.7, 3, 0.6667),
    ]


def test_votes_without_a_verdict_do_not_vote_and_silent_pairs_are_left_out():
    found = calibration(counted(("a", True, "q", "TNNF"), ("b", True, "r", "NNNN")), BARE)
    assert found.brier.value == pytest.approx(0.25)
    assert found.left_out == 1
    silent = calibration(counted(("b", True, "r", "NN")), BARE)
    assert math.isnan(silent.brier.value)
    assert math.isnan(silent.ece.value)
    assert silent.bins == ()


@pytest.mark.parametrize("bins", [1, 5, 10, 100])
def test_it_equals_a_loop_with_weights(bins):
    pairs, given = drawn(30, 2, 7, seed=5)
    pairs = [replace(one, weight=1.0 + n % 3) for n, one in enumerate(pairs)]
    counts = count_votes(check(pairs, given))
    edges = np.arange(bins + 1) / bins
    groups: dict[int, list[tuple[float, float, bool]]] = {}
    for accepted, rejected, label, weight in zip(
        counts.accepted.tolist(), counts.rejected.tolist(), counts.label, counts.weight, strict=True
    ):
        share = accepted / (accepted + rejected)
        place = max(n for n in range(bins) if share >= edges[n] - 1e-12)
        groups.setdefault(place, []).append((weight, share, bool(label)))
    total = counts.weight.sum()
    ece = sum(abs(sum(w * (v - y) for w, v, y in group)) for group in groups.values()) / total
    brier = sum(w * (v - y) ** 2 for group in groups.values() for w, v, y in group) / total
    found = calibration(counts, BARE, bins)
    assert found.ece.value == pytest.approx(ece)
    assert found.brier.value == pytest.approx(brier)
    assert [one.pairs for one in found.bins] == [len(groups[n]) for n in sorted(groups)]


def test_bins_of_all_or_none_have_exact_intervals_over_questions():
    rows = [(f"a{n}", True, f"q{n // 2}", "TTTT") for n in range(12)]
    rows += [(f"b{n}", False, f"r{n}", "FFFF") for n in range(4)]
    rows += [(f"c{n}", n % 2 == 0, f"s{n}", "TTFF") for n in range(6)]
    none, half, every = calibration(counted(*rows), Intervals()).bins
    # 12 proofs of 6 questions count as 6: p^6 = 0.025 at the lower end
    assert (every.pairs, every.right.low, every.right.high) == (12, pytest.approx(0.025 ** (1 / 6)), 1)
    assert every.right.note == "exact (Clopper-Pearson) over 6 questions"
    assert (none.right.value, none.right.low, none.right.high) == (0, 0, pytest.approx(1 - 0.025**0.25))
    assert 0.05 < half.right.low < 0.5 < half.right.high < 0.95
    assert "exact" not in half.right.note


def test_bins_that_cannot_be_are_refused():
    for bins in (0, 101, 2.5, True):
        with pytest.raises(ConfigError, match="1 to 100 bins"):
            calibration(counted(("a", True, "q", "T")), BARE, bins)  # pyright: ignore[reportArgumentType]


def test_lengths_by_verdict_and_correctness():
    given = [
        *votes("a", "TT", length=10.0),
        *(replace(vote, sample=vote.sample + 2) for vote in votes("a", "F", length=40.0)),
        *votes("b", "TN", "r", length=100.0),
        *(replace(vote, sample=2) for vote in votes("b", "F", "r")),
    ]
    rows, without = lengths(count_votes(check([pair("a", True), pair("b", False, "r")], given)), BARE)
    assert [row.kind for row in rows] == list(KINDS)
    found = {row.kind: (row.votes, row.mean.value) for row in rows}
    assert found["all"] == (5, pytest.approx(52))
    assert found["true"] == (3, pytest.approx(40))
    assert found["false"] == (1, pytest.approx(40))  # the other has no length
    assert found["none"] == (1, pytest.approx(100))
    assert found["right"] == (2, pytest.approx(10))
    assert found["wrong"] == (2, pytest.approx(70))
    assert found["right proofs"] == (3, pytest.approx(20))
    assert without == 1


def test_without_any_length_there_is_no_number():
    rows, without = lengths(counted(("a", True, "q", "TF")), BARE)
    assert without == 2
    assert all(row.votes == 0 and math.isnan(row.mean.value) and math.isnan(row.median) for row in rows)
