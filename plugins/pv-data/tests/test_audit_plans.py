"""The paper's rounds, the smallest fixed plan and the sequential test."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scipy.stats import binom

from pv_data.audit import (
    Risks,
    Rounds,
    Stage,
    compare,
    fixed_plan,
    operating_characteristic,
    sequential_plan,
    usual_plans,
)
from pv_rl.errors import ConfigError, DataError


def test_rounds_read_fractions_rounded_up_and_at_least_thirty():
    assert [one.checked for one in Rounds().of(10_000)] == [50, 100, 250]
    assert [one.checked for one in Rounds().of(1440)] == [30, 30, 36]
    assert [one.checked for one in Rounds(least_applies="last").of(1440)] == [8, 15, 36]
    assert [one.checked for one in Rounds(least_applies="last").of(600)] == [3, 6, 30]
    assert [one.checked for one in Rounds().of(12)] == [12, 12, 12]


def test_a_gate_is_passed_when_it_is_met():
    last = Rounds().of(600)[-1]
    assert last.passes(27, 30)
    assert not last.passes(26, 30)
    assert all(Rounds(gates=(0.7, 0.7, 0.7)).of(600)[-1].passes(7 * n, 10 * n) for n in range(1, 200))


def test_rounds_that_read_the_same_become_one_with_the_higher_gate():
    assert Rounds().plan(600).stages == (Stage(checked=30, accept=27, reject=26),)
    # 75% and 80% of 30: 24; 90% of 36: 32.4.
    assert Rounds().plan(1440).stages == (
        Stage(checked=30, reject=23),
        Stage(checked=36, accept=33, reject=32),
    )
    # 75% of 3: 2.25; 80% of 6: 4.8.
    assert Rounds(least_applies="last").plan(600).stages == (
        Stage(checked=3, reject=2),
        Stage(checked=6, reject=4),
        Stage(checked=30, accept=27, reject=26),
    )


def test_a_gate_of_zero_stops_nothing():
    plan = Rounds(fractions=(0.01, 0.1), gates=(0.0, 0.9)).plan(1000)
    assert plan.stages == (Stage(checked=100, accept=90, reject=89),)
    with pytest.raises(ConfigError, match="last gate"):
        Rounds(fractions=(0.01,), gates=(0.0,))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"fractions": (0.01,)}, "one of each for every round"),
        ({"fractions": (), "gates": ()}, "one of each for every round"),
        ({"fractions": (0.02, 0.01, 0.03)}, "let them grow"),
        ({"fractions": (0.0, 0.01, 0.03)}, "let them grow"),
        ({"gates": (75, 80, 90)}, "gates is 75"),
        ({"least_applies": "first"}, "give every or last"),
    ],
)
def test_rounds_that_make_no_sense_are_refused(settings: dict, says: str):
    with pytest.raises(ConfigError, match=says):
        Rounds(**settings)


def test_a_slice_without_proofs_has_no_rounds():
    with pytest.raises(DataError, match="size is 0"):
        Rounds().of(0)


@pytest.mark.parametrize(
    "risks", [Risks(), Risks(good=0.9, bad=0.7, alpha=0.05), Risks(good=0.99, bad=0.95, beta=0.2)]
)
def test_the_fixed_plan_is_the_smallest_by_scipy(risks: Risks):
    (stage,) = fixed_plan(risks).stages
    assert stage.accept is not None
    assert binom.sf(stage.accept - 1, stage.checked, risks.bad) <= risks.beta
    assert binom.cdf(stage.accept - 1, stage.checked, risks.good) <= risks.alpha
    for n in range(1, stage.checked):
        c = np.arange(n + 2)
        both = (binom.sf(c - 1, n, risks.bad) <= risks.beta) & (
            binom.cdf(c - 1, n, risks.good) <= risks.alpha
        )
        assert not both.any()


def test_95_from_80_with_ten_percent_risks_takes_29_of_32():
    assert fixed_plan(Risks()).stages == (Stage(checked=32, accept=29, reject=28),)


@pytest.mark.parametrize("risks", [Risks(), Risks(good=0.9, bad=0.7, alpha=0.05), Risks(good=0.98, bad=0.9)])
def test_the_sequential_test_keeps_both_risks_and_reads_less(risks: Risks):
    plan, fixed = sequential_plan(risks), fixed_plan(risks)
    good, bad = (operating_characteristic(plan, rate) for rate in (risks.good, risks.bad))
    assert 1 - good.accept <= risks.alpha + 1e-12
    assert bad.accept <= risks.beta + 1e-12
    assert max(good.expected_checked, bad.expected_checked) < 0.75 * fixed.most
    assert plan.most < 2 * fixed.most


def test_walds_own_limits_would_break_a_risk_that_the_plan_keeps():
    risks = Risks(good=0.98, bad=0.9)
    walds = operating_characteristic(sequential_plan(risks, most=600), 0.9)
    assert walds.accept > 0.10
    assert operating_characteristic(sequential_plan(risks), 0.9).accept <= 0.10


def test_the_sequential_test_stops_where_walds_ratio_says():
    risks = Risks(good=0.95, bad=0.8, alpha=0.05, beta=0.1)
    plan = sequential_plan(risks)
    stages = {stage.checked: stage for stage in plan.stages[:-1]}
    for n in range(1, plan.most):
        ratio = [k * log(0.8 / 0.95) + (n - k) * log(0.2 / 0.05) for k in range(n + 1)]
        accepts = [k for k in range(n + 1) if ratio[k] <= log(0.1 / 0.95)]
        rejects = [k for k in range(n + 1) if ratio[k] >= log(0.9 / 0.05)]
        stage = stages.get(n)
        assert (min(accepts, default=None), max(rejects, default=None)) == (
            (stage.accept, stage.reject) if stage else (None, None)
        )


def test_no_slightly_earlier_cut_of_the_sequential_test_keeps_both_risks():
    plan = sequential_plan(Risks())
    for most in range(plan.most - 4, plan.most):
        for cut in range(most // 2, most + 1):
            earlier = [stage for stage in plan.stages if stage.checked < most]
            stages = (*earlier, Stage(checked=most, accept=cut, reject=cut - 1))
            bad, good = (
                operating_characteristic(type(plan)(name="", stages=stages), rate) for rate in (0.80, 0.95)
            )
            assert bad.accept > 0.10 or 1 - good.accept > 0.10


def test_a_sequential_test_can_be_cut_earlier_at_the_cost_of_its_risks():
    plan = sequential_plan(Risks(), most=20)
    assert plan.most == 20
    # r is 0 at 20 log(4) / (log(4) + log(0.95/0.8)) = 17.8 agreements.
    assert plan.stages[-1].accept == 18
    assert operating_characteristic(plan, 0.8).accept > 0.10


def test_the_sequential_test_is_that_of_a_simulation():
    plan = sequential_plan(Risks())
    generator, read, passed = np.random.default_rng(5), [], []
    for marks in generator.random((4000, plan.most)) < 0.9:
        sums = marks.cumsum()
        for stage in plan.stages:
            k = sums[stage.checked - 1]
            if (stage.accept is not None and k >= stage.accept) or (
                stage.reject is not None and k <= stage.reject
            ):
                read.append(stage.checked)
                passed.append(stage.accept is not None and k >= stage.accept)
                break
    found = operating_characteristic(plan, 0.9)
    assert found.accept == pytest.approx(np.mean(passed), abs=4 * 0.5 / 4000**0.5)
    assert found.expected_checked == pytest.approx(np.mean(read), abs=4 * np.std(read) / 4000**0.5)


@pytest.mark.parametrize(
    ("risks", "says"),
    [
        ({"good": 0.8}, "bad below good"),
        ({"good": 1.0}, "good is 1.0"),
        ({"alpha": 0.6, "beta": 0.5}, "a coin would do"),
    ],
)
def test_risks_that_make_no_sense_are_refused(risks: dict, says: str):
    with pytest.raises(ConfigError, match=says):
        Risks(**risks)


def test_agreements_too_close_to_tell_apart_are_refused():
    for plan in (fixed_plan, sequential_plan):
        with pytest.raises(ConfigError, match="5,000"):
            plan(Risks(good=0.9, bad=0.899))


def test_the_small_slices_of_the_paper_lose_good_ones_to_its_first_gates():
    every, _, last, *_ = usual_plans(600)
    assert operating_characteristic(every, 0.95).accept == pytest.approx(0.939, abs=5e-4)
    assert operating_characteristic(last, 0.95).accept == pytest.approx(0.816, abs=5e-4)


def test_plans_are_compared_at_every_agreement():
    found = compare(usual_plans(1440), 1440, agreements=(0.8, 0.95), minutes=6)
    assert len(found.plans) == 6
    assert all([at.agreement for at in one.at] == [0.8, 0.95] for one in found.plans)
    paper = found.plans[0]
    assert paper.bound == pytest.approx(0.8238, abs=5e-5)
    assert found.hours(36) == pytest.approx(3.6)
    assert found.document()["plans"][0]["plan"]["stages"][0] == {"checked": 30, "accept": None, "reject": 23}
    with pytest.raises(ConfigError, match="at least one of each"):
        compare((), 1440)
    with pytest.raises(ConfigError, match="minutes is 0"):
        compare(usual_plans(1440), 1440, minutes=0)
