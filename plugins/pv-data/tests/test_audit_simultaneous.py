"""Bounds for many slices at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from pv_data.audit import confidence_each, lower_bound, simultaneous_lower_bounds, slices_above
from pv_rl.errors import ConfigError, DataError


def test_each_bound_gets_a_part_of_the_risk_by_hand():
    assert confidence_each(0.9, 1) == pytest.approx(0.9)
    assert confidence_each(0.81, 2) == pytest.approx(0.9)  # 0.9 x 0.9
    assert confidence_each(0.9, 10, "bonferroni") == pytest.approx(0.99)
    assert confidence_each(0.9, 18) == pytest.approx(0.99416, abs=5e-6)
    assert confidence_each(0.9, 18, "bonferroni") == pytest.approx(0.99444, abs=5e-6)


def test_a_slice_has_the_single_bound_at_its_own_confidence():
    both = simultaneous_lower_bounds({"a": (27, 30), "b": (14, 15)}, 0.81, populations={"b": 15})
    assert both["a"] == pytest.approx(lower_bound(27, 30, 0.9))
    assert both["b"] == 14 / 15


def test_sidak_is_tighter_than_bonferroni():
    slices = {str(one): (27, 30) for one in range(30)}
    sidak, bonferroni = (
        simultaneous_lower_bounds(slices, method=name)["0"] for name in ("sidak", "bonferroni")
    )
    assert bonferroni < sidak < lower_bound(27, 30)


def test_holm_by_hand_against_scipys_p_values():
    # p-values at 0.8: 30/30 0.0012, 29/30 0.0105, 28/30 0.0442, 27/30 0.1227, 20/30 0.97.
    slices = {"e": (20, 30), "a": (30, 30), "d": (27, 30), "b": (29, 30), "c": (28, 30)}
    p = {
        name: binomtest(agree, checked, 0.8, alternative="greater").pvalue
        for name, (agree, checked) in slices.items()
    }
    assert (p["a"], p["b"], p["c"]) == pytest.approx((0.0012, 0.0105, 0.0442), abs=5e-5)
    # at 0.1: a <= 0.1/5, b <= 0.1/4, c: 0.0442 > 0.1/3.
    assert slices_above(slices, 0.8, 0.9) == {"a", "b"}
    # at 0.15: c: 0.0442 <= 0.15/3, d: 0.1227 > 0.15/2.
    assert slices_above(slices, 0.8, 0.85) == {"a", "b", "c"}


def test_holm_names_every_slice_that_bonferronis_bounds_show_and_more():
    slices = {"a": (30, 30), "b": (29, 30), "c": (28, 30), "d": (27, 30)}
    bounds = simultaneous_lower_bounds(slices, 0.9, method="bonferroni")
    shown = {name for name, bound in bounds.items() if bound > 0.8}
    assert shown == {"a", "b"}
    assert slices_above(slices, 0.8, 0.9) == {"a", "b", "c"}  # 0.0442 <= 0.1/2, once two are settled


def test_no_slice_is_named_wrongly_more_often_than_stated():
    generator = np.random.default_rng(0)
    rounds = generator.binomial(30, 0.8, size=(500, 6))  # all at the threshold: any that is named is wrong
    wrong = sum(
        bool(slices_above({str(place): (int(k), 30) for place, k in enumerate(row)}, 0.8)) for row in rounds
    )
    assert wrong / 500 < 0.10 + 3 * (0.09 / 500) ** 0.5


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="method is 'holm'"):
        simultaneous_lower_bounds({"a": (1, 2)}, method="holm")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="agree is 3 of 2"):
        slices_above({"a": (3, 2)}, 0.8)
    with pytest.raises(ConfigError, match="threshold is 80"):
        slices_above({"a": (1, 2)}, 80)
    assert simultaneous_lower_bounds({}) == {}
    assert slices_above({}, 0.8) == frozenset()
