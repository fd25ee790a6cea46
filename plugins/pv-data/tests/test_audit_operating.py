"""What a plan does at a known agreement, against every sequence, scipy and simulation."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from pv_data.audit import (
    Plan,
    Rounds,
    Stage,
    curtailed,
    implied_bound,
    lower_bound,
    operating_characteristic,
)
from pv_rl.errors import ConfigError, DataError

SMALL = Plan(
    name="small",
    stages=(
        Stage(checked=2, reject=0),
        Stage(checked=4, accept=4, reject=2),
        Stage(checked=7, accept=6, reject=5),
    ),
)


def _follow(plan: Plan, marks: tuple[int, ...]) -> tuple[int, bool]:
    """Proofs read and the decision for one sequence of marks."""
    for stage in plan.stages:
        agree = sum(marks[: stage.checked])
        if stage.accept is not None and agree >= stage.accept:
            return stage.checked, True
        if stage.reject is not None and agree <= stage.reject:
            return stage.checked, False
    raise AssertionError


def test_two_of_two_by_hand():
    found = operating_characteristic(Plan(name="", stages=(Stage(checked=2, accept=2, reject=1),)), 0.9)
    assert found.accept == pytest.approx(0.81)
    assert found.expected_checked == pytest.approx(2)


def test_two_stages_by_hand():
    # Discard if the first one differs (0.2); else accept if 2 of 2 agree.
    plan = Plan(name="", stages=(Stage(checked=1, reject=0), Stage(checked=2, accept=2, reject=1)))
    found = operating_characteristic(plan, 0.8)
    assert found.accept == pytest.approx(0.64)
    assert found.expected_checked == pytest.approx(0.2 * 1 + 0.8 * 2)
    assert [(stop.checked, stop.accept, stop.reject) for stop in found.stops] == [
        (1, 0, pytest.approx(0.2)),
        (2, pytest.approx(0.64), pytest.approx(0.16)),
    ]


@pytest.mark.parametrize("agreement", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("plan", [SMALL, curtailed(SMALL)])
def test_it_is_the_sum_over_every_sequence(plan: Plan, agreement: float):
    accept = expected = 0.0
    for marks in product((0, 1), repeat=plan.most):
        chance = agreement ** sum(marks) * (1 - agreement) ** (plan.most - sum(marks))
        checked, passed = _follow(plan, marks)
        accept, expected = accept + chance * passed, expected + chance * checked
    found = operating_characteristic(plan, agreement)
    assert found.accept == pytest.approx(accept)
    assert found.expected_checked == pytest.approx(expected)
    assert sum(stop.accept + stop.reject for stop in found.stops) == pytest.approx(1)


@pytest.mark.parametrize("good", range(9))
def test_without_replacement_it_is_the_mean_over_every_order(good: int):
    orders = [_follow(SMALL, marks[:7]) for marks in permutations([1] * good + [0] * (8 - good))]
    found = operating_characteristic(SMALL, good / 8, population=8)
    assert found.accept == pytest.approx(sum(passed for _, passed in orders) / len(orders))
    assert found.expected_checked == pytest.approx(sum(checked for checked, _ in orders) / len(orders))


def test_one_stage_is_the_distribution_of_scipy():
    plan = Plan(name="", stages=(Stage(checked=30, accept=27, reject=26),))
    for agreement in (0.5, 0.79, 0.9, 0.999):
        endless = operating_characteristic(plan, agreement).accept
        assert endless == pytest.approx(binom.sf(26, 30, agreement), abs=1e-12)
        finite = operating_characteristic(plan, agreement, population=500)
        assert finite.agreement == round(agreement * 500) / 500
        assert finite.accept == pytest.approx(hypergeom.sf(26, 500, round(agreement * 500), 30), abs=1e-12)


def test_the_papers_rounds_are_those_of_a_simulation():
    plan = Rounds(least_applies="last").plan(600)
    assert [stage.checked for stage in plan.stages] == [3, 6, 30]
    runs = np.random.default_rng(0).random((20_000, 30)) < 0.9
    sums = runs.cumsum(axis=1)
    first = sums[:, 2] >= 0.75 * 3
    second = first & (sums[:, 5] >= 0.80 * 6)
    third = second & (sums[:, 29] >= 27)
    found = operating_characteristic(plan, 0.9)
    assert found.accept == pytest.approx(third.mean(), abs=4 * 0.5 / 20_000**0.5)
    stops = [stop.reject for stop in found.stops]
    seen = [(~first).mean(), (first & ~second).mean(), (second & ~third).mean()]
    assert stops == pytest.approx(seen, abs=4 * 0.5 / 20_000**0.5)


def test_the_implied_bound_of_one_look_is_clopper_and_pearsons():
    plan = Plan(name="", stages=(Stage(checked=30, accept=27, reject=26),))
    assert implied_bound(plan) == pytest.approx(lower_bound(27, 30), abs=1e-6)
    assert implied_bound(plan, 0.99) == pytest.approx(lower_bound(27, 30, 0.99), abs=1e-6)
    assert implied_bound(plan, population=90) == lower_bound(27, 30, population=90)


def test_the_implied_bound_counts_the_other_looks():
    once = Plan(name="", stages=(Stage(checked=30, accept=27, reject=26),))
    twice = Plan(name="", stages=(Stage(checked=10, accept=10), *once.stages))
    assert implied_bound(twice) < implied_bound(once) < implied_bound(Rounds(least_applies="last").plan(600))
    at = implied_bound(twice)
    assert operating_characteristic(twice, at).accept == pytest.approx(0.10, abs=1e-5)


@pytest.mark.parametrize("plan", [SMALL, Rounds().plan(1440), Rounds(least_applies="last").plan(600)])
def test_stopping_once_it_is_certain_changes_no_decision(plan: Plan):
    short = curtailed(plan)
    for agreement in (0.4, 0.8, 0.9, 0.97):
        before, after = (operating_characteristic(one, agreement) for one in (plan, short))
        assert after.accept == pytest.approx(before.accept, abs=1e-12)
        assert after.expected_checked < before.expected_checked


def test_a_curtailed_sequence_ends_as_soon_as_no_other_end_is_left():
    short = curtailed(SMALL)
    for marks in product((0, 1), repeat=7):
        checked, passed = _follow(short, marks)
        ends = [
            {_follow(SMALL, marks[:n] + rest)[1] for rest in product((0, 1), repeat=7 - n)} for n in range(8)
        ]
        assert passed == _follow(SMALL, marks)[1]
        assert checked == max(1, next(n for n in range(8) if len(ends[n]) == 1))


def test_27_of_30_is_lost_with_the_fourth_disagreement():
    short = curtailed(Plan(name="x", stages=(Stage(checked=30, accept=27, reject=26),)))
    assert short.name == "x, curtailed"
    assert short.stages[0] == Stage(checked=4, reject=0)
    assert short.stages[23] == Stage(checked=27, accept=27, reject=23)


def test_a_plan_that_cannot_be_followed_is_refused():
    last = Stage(checked=4, accept=3, reject=2)
    with pytest.raises(ConfigError, match="no stages"):
        Plan(name="a", stages=())
    with pytest.raises(ConfigError, match="must decide every case"):
        Plan(name="a", stages=(Stage(checked=4, accept=4, reject=2),))
    with pytest.raises(ConfigError, match="larger than the one before"):
        Plan(name="a", stages=(Stage(checked=4, reject=0), last))
    with pytest.raises(ConfigError, match="which no sample reaches"):
        Stage(checked=4, accept=5)
    with pytest.raises(ConfigError, match="reject below accept"):
        Stage(checked=4, accept=2, reject=2)
    with pytest.raises(DataError, match="checked is 0"):
        Stage(checked=0)
    plan = Plan(name="a", stages=(last,))
    with pytest.raises(ConfigError, match="agreement is 90"):
        operating_characteristic(plan, 90)
    with pytest.raises(ConfigError, match="reads up to 4 proofs of 3"):
        operating_characteristic(plan, 0.9, population=3)
