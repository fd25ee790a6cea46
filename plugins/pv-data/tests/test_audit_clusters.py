"""Proofs of one question say less than as many of different questions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f_oneway

from pv_data.audit import bootstrap_lower_bound, clustered_lower_bound, intraclass_correlation, lower_bound
from pv_rl.errors import ConfigError, DataError


def _marks(*groups: list[int]) -> list[tuple[str, bool]]:
    return [(f"q{place}", bool(one)) for place, group in enumerate(groups) for one in group]


def test_the_correlation_by_hand():
    # Means 1 and 1/2 of 2 each, grand mean 3/4: B = 2 (1/16 + 1/16) / 1 = 1/4; W = (1/4 + 1/4) / 2 = 1/4.
    assert intraclass_correlation([[True, True], [True, False]]) == 0
    # 1, 1, 0: B = 2 (1/9 + 1/9 + 4/9) / 2 = 2/3, W = 0.
    assert intraclass_correlation([[True, True], [True, True], [False, False]]) == 1
    # [1,1,1], [1,0,0], [0,0,0]: B = 3 (25/81 + 1/81 + 16/81) / 2 = 7/9, W = (2/3) / 6 = 1/9:
    # (7/9 - 1/9) / (7/9 + 2/9) = 2/3.
    groups = [[True] * 3, [True, False, False], [False] * 3]
    assert intraclass_correlation(groups) == pytest.approx(2 / 3)


def test_the_correlation_is_that_of_scipys_analysis_of_variance():
    generator = np.random.default_rng(3)
    groups = [list(generator.random(size) < rate) for size, rate in [(4, 0.9), (4, 0.2), (4, 0.6), (4, 1.0)]]
    f = f_oneway(*[np.array(group, float) for group in groups]).statistic
    assert intraclass_correlation(groups) == pytest.approx((f - 1) / (f + 3))


def test_groups_of_unequal_sizes_count_as_their_adjusted_mean_size():
    groups = [[True] * 4, [True, False], [False] * 3]
    f = f_oneway(*[np.array(group, float) for group in groups]).statistic
    size = (9 - (16 + 4 + 9) / 9) / 2
    assert intraclass_correlation(groups) == pytest.approx((f - 1) / (f + size - 1))


def test_no_correlation_is_the_exact_bound():
    marks = _marks(*([[1, 1]] * 16 + [[1, 0]] * 4))
    found = clustered_lower_bound(marks)
    assert (found.agree, found.checked, found.questions) == (36, 40, 20)
    assert (found.correlation, found.effective) == (0, 40)
    assert found.estimated
    assert found.lower == pytest.approx(lower_bound(36, 40))


def test_full_correlation_counts_a_question_about_once():
    marks = _marks(*([[1, 1]] * 18 + [[0, 0]] * 2))
    found = clustered_lower_bound(marks)
    assert found.correlation == pytest.approx(1)
    assert found.effective == pytest.approx(20 * (1.30364 / 1.32773) ** 2, abs=1e-3)  # t(39) and t(19) at 0.9
    assert found.lower == pytest.approx(0.7515, abs=5e-4)
    assert lower_bound(36, 40) == pytest.approx(0.810, abs=5e-4)
    assert lower_bound(18, 20) > found.lower > lower_bound(17, 20)


def test_what_cannot_be_estimated_is_taken_at_its_worst():
    found = clustered_lower_bound(_marks(*([[1, 1, 1]] * 10)))
    assert not found.estimated
    assert found.correlation == 1
    assert found.lower < lower_bound(10, 10) < lower_bound(30, 30)
    assert clustered_lower_bound(_marks(*([[1, 1, 1]] * 10)), correlation=0).lower == pytest.approx(
        lower_bound(30, 30)
    )


def test_a_proof_a_question_is_the_exact_bound():
    found = clustered_lower_bound(_marks(*([[1]] * 27 + [[0]] * 3)))
    assert found.effective == 30
    assert found.lower == pytest.approx(lower_bound(27, 30))


def _drawn(generator: np.random.Generator, questions: int, size: int, rate: float, rho: float) -> list:
    """Beta-binomial: each question has an agreement of its own."""
    spread = (1 - rho) / rho
    own = generator.beta(rate * spread, (1 - rate) * spread, size=questions)
    return _marks(*(generator.random((questions, size)) < own[:, None]).astype(int).tolist())


@pytest.mark.parametrize(
    ("questions", "size", "rho", "rate", "exact", "aware"),
    [
        (40, 4, 0.4, 0.85, 0.165, 0.082),
        (40, 4, 0.4, 0.95, 0.222, 0.108),
        (20, 4, 0.4, 0.85, 0.152, 0.080),
        (20, 4, 0.4, 0.95, 0.212, 0.138),
        (40, 2, 0.3, 0.92, 0.052, 0.045),
    ],
)
def test_how_often_the_bounds_are_above_the_truth(
    questions: int, size: int, rho: float, rate: float, exact: float, aware: float
):
    """docs/concepts/audit.md quotes these numbers; the clustered bound keeps to 10% in all but the fourth."""
    generator = np.random.default_rng(1)
    runs = [_drawn(generator, questions, size, rate, rho) for _ in range(600)]
    unaware = [lower_bound(sum(one for _, one in run), questions * size) > rate for run in runs]
    clustered = [clustered_lower_bound(run).lower > rate for run in runs]
    assert np.mean(unaware) == pytest.approx(exact, abs=0.01)
    assert np.mean(clustered) == pytest.approx(aware, abs=0.01)


def test_the_bootstrap_draws_whole_questions():
    generator = np.random.default_rng(2)
    marks = _drawn(generator, 60, 4, 0.8, 0.4)
    alone = [(str(place), one) for place, (_, one) in enumerate(marks)]
    clustered, independent = (bootstrap_lower_bound(one, draws=2000) for one in (marks, alone))
    assert clustered < independent - 0.01
    assert clustered == pytest.approx(clustered_lower_bound(marks).lower, abs=0.03)


def test_the_bootstrap_is_the_same_for_a_seed_and_any_order():
    marks = _drawn(np.random.default_rng(4), 20, 3, 0.8, 0.3)
    same = bootstrap_lower_bound(list(reversed(marks)), draws=500, seed=7)
    assert bootstrap_lower_bound(marks, draws=500, seed=7) == same


def test_marks_from_which_nothing_follows_are_refused():
    with pytest.raises(DataError, match="of 1 question;"):
        clustered_lower_bound(_marks([1, 0, 1]))
    with pytest.raises(DataError, match="of 0 questions"):
        clustered_lower_bound([])
    with pytest.raises(DataError, match="all marks are alike"):
        bootstrap_lower_bound(_marks([1], [1]))
    with pytest.raises(ConfigError, match="correlation is 2"):
        clustered_lower_bound(_marks([1], [0]), correlation=2)
    with pytest.raises(DataError, match="draws is 0"):
        bootstrap_lower_bound(_marks([1], [0]), draws=0)
