"""The bootstrap against scipy's, and where it can say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from evaluate_cases import counted, drawn
from scipy.stats import bootstrap

from pv_eval import check
from pv_eval.counts import Sums, count_votes, ratio
from pv_eval.intervals import Bootstrap, bca, estimate_all
from pv_eval.metrics import METRICS, class_sums
from pv_rl.errors import ConfigError

MEAN = {"mean": lambda s: ratio(s["x"], s["one"])}


def sums_of(values: np.ndarray, sizes: np.ndarray | None = None) -> Sums:
    sizes = np.ones_like(values) if sizes is None else sizes
    return Sums(names=("x", "one"), table=np.column_stack([values, sizes]))


def test_a_ratio_over_skewed_clusters_has_scipys_bca_interval():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, 40).astype(float)
    values = sizes * rng.beta(8, 1, 40)
    mine = estimate_all(sums_of(values, sizes), MEAN, Bootstrap(resamples=20_000))["mean"]
    theirs = bootstrap(
        (values, sizes),
        lambda x, n, axis: x.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        batch=1000,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert mine.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert mine.high == pytest.approx(theirs.high, abs=0.03 * width)
    # and it is not the percentile interval
    assert abs(mine.low - np.quantile(_resampled(values, sizes), 0.025)) > 0.05 * width


def _resampled(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    rows = np.random.default_rng(2).integers(0, len(values), (20_000, len(values)))
    return values[rows].sum(axis=1) / sizes[rows].sum(axis=1)


def test_pairs_of_one_question_are_drawn_together():
    alone = counted(*((f"{q}{p}", True, f"{q}{p}", "TF"[q % 2] * 4) for q in range(20) for p in range(5)))
    together = counted(*((f"{q}{p}", True, f"{q}", "TF"[q % 2] * 4) for q in range(20) for p in range(5)))
    widths = []
    for counts in (alone, together):
        one = estimate_all(class_sums(counts), METRICS, Bootstrap())["accuracy"]
        widths.append(one.high - one.low)
    # 100 coins against 20: sqrt(5) times as wide
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(5), rel=0.15)


def test_intervals_of_95_percent_hold_about_as_often():
    rng = np.random.default_rng(0)
    held = 0
    for trial in range(300):
        chances = rng.beta(4, 2, 40)  # mean 2/3, one a question
        right = rng.binomial(24, chances) / 24  # 3 pairs of 8 votes
        one = estimate_all(sums_of(right), MEAN, Bootstrap(resamples=400, seed=trial))["mean"]
        held += one.low <= 2 / 3 <= one.high
    assert 0.91 <= held / 300 <= 0.98


def test_the_same_seed_gives_the_same_interval_and_another_another():
    sums = class_sums(count_votes(check(*drawn(20, 3, 4))))
    one, same, other = (estimate_all(sums, METRICS, Bootstrap(seed=seed))["accuracy"] for seed in (3, 3, 4))
    assert one == same
    assert (one.low, one.high) != (other.low, other.high)
    narrow = estimate_all(sums, METRICS, Bootstrap(seed=3, level=0.5))["accuracy"]
    assert one.low < narrow.low < narrow.high < one.high


def test_where_nothing_can_be_said_there_is_a_note_and_no_interval():
    counts = counted(("a", True, "q", "TF"), ("b", False, "q", "TF"))
    one = estimate_all(class_sums(counts), METRICS, Bootstrap())["accuracy"]
    assert (one.value, one.note) == (0.5, "one question only")
    assert math.isnan(one.low)
    all_right = counted(*((f"p{n}", True, f"q{n}", "TT") for n in range(12)))
    one = estimate_all(class_sums(all_right), METRICS, Bootstrap())["accuracy"]
    assert one.value == 1
    assert math.isnan(one.high)
    assert "no certainty" in one.note
    rare = counted(("a", False, "q", "TF"), *((f"p{n}", True, f"q{n}", "TF"[n % 2] * 2) for n in range(12)))
    one = estimate_all(class_sums(rare), METRICS, Bootstrap())["accuracy_wrong"]
    assert one.value == 0.5
    assert "a class occurs in few questions" in one.note
    beyond = bca(0.0, np.linspace(0.1, 0.2, 1000), np.array([0.0, 0.1]), 0.95)
    assert math.isnan(beyond.low)
    assert "outside all resamples" in beyond.note
    few = estimate_all(sums_of(np.array([0.0, 1.0, 1.0, 0.5])), MEAN, Bootstrap())["mean"]
    assert few.low < few.value < few.high
    assert "4 questions only" in few.note


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match="take 100 or more, or 0"):
        Bootstrap(resamples=50)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        Bootstrap(level=95)
