"""What a step's weights do: numbers worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pv_rl.losses import resolve_mode
from pv_runs.mass import expected_remark, mass
from pv_runs.weight_shares import diagnose, length_quartiles

GRPO, DAPO = resolve_mode("grpo"), resolve_mode("dapo")


def test_the_mass_of_an_update_is_reported_where_it_is_far_from_1():
    assert mass(resolve_mode("dr_grpo:10"), [1, 2, 5], "aaa") == pytest.approx(8 / 30)
    assert mass(resolve_mode("balanced"), [1, 2, 5, 0], "aabb") == pytest.approx(1.0)
    for signs in (None, [1, -1, -1, 0]):
        assert mass(resolve_mode("ba"), [1, 2, 5, 0], "aaab", signs) == pytest.approx(1.0)

    # Two prompts of 480 tokens and 4,800: 4,800 / 15,000 is less than 1/3, 4,800 / 14,000 is not.
    remark = expected_remark(resolve_mode("dr_grpo:15000"), 2, 4, (480, 4800), "at 480 to 4,800 tokens")
    assert remark is not None
    assert "the mass of an update is 0.032 to 0.32 at 480 to 4,800 tokens; it is 1 with grpo" in remark
    for spec in ("dr_grpo:14000", "dr_grpo:160", "grpo", "dapo@batch", "balanced"):
        assert expected_remark(resolve_mode(spec), 2, 4, (480, 4800), "") is None
    assert expected_remark(resolve_mode("dr_grpo:159"), 2, 4, (480, 4800), "") is not None  # 480 / 159 > 3


def test_a_mode_that_cannot_weigh_made_up_lengths_gets_no_remark():
    """All equal: a plugin that divides by their deviation has nothing to divide by."""
    broken = replace(GRPO, name="theirs", weighting=lambda responses, batch: responses.length / 0.0)
    assert expected_remark(broken, 2, 4, (480,), "") is None


def test_shares_by_length_and_sign_follow_the_mass():
    """dapo on one prompt: a response's share is its share of the tokens."""
    numbers = diagnose(DAPO, [1, 2, 3, 4], "aaaa", [1.0, -1.0, 0.0, 2.0])
    assert [numbers[f"weight_share/length_q{q}"] for q in (1, 2, 3, 4)] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert numbers["weight_share/advantage_positive"] == pytest.approx(0.5)
    assert numbers["weight_share/advantage_negative"] == pytest.approx(0.2)
    assert numbers["weight_share/advantage_zero"] == pytest.approx(0.3)
    assert "eta" not in numbers
    assert not [name for name in numbers if "verdict" in name]


def test_shares_of_balanced_aggregation_follow_the_signs():
    """+ - - of lengths 1, 2, 5: w = 1/3, 2/21, 2/21."""
    numbers = diagnose(resolve_mode("ba"), [1, 2, 5], "aaa", [0.5, -1.0, -0.1])
    assert numbers["weight_share/advantage_positive"] == pytest.approx(1 / 3)
    assert numbers["weight_share/length_q3"] == pytest.approx(10 / 21)


def test_equal_lengths_are_in_one_quartile():
    numbers = diagnose(GRPO, [7, 7, 7, 7], "aaaa", [1, 1, 1, 1])
    assert [numbers[f"weight_share/length_q{q}"] for q in (1, 2, 3, 4)] == pytest.approx([1, 0, 0, 0])


def test_quartiles_have_about_as_many_responses_each():
    quartiles = length_quartiles(torch.tensor([6.0, 5.0, 0.0, 4.0, 3.0, 2.0, 1.0]))
    lengths = torch.tensor([6, 5, 0, 4, 3, 2, 1])
    assert [sorted(lengths[rows].tolist()) for rows in quartiles] == [[1, 2], [3], [4, 5], [6]]


def test_an_advantage_that_is_no_number_shows():
    numbers = diagnose(DAPO, [1, 3], "aa", [float("nan"), 1.0])
    assert numbers["weight_share/advantage_nan"] == pytest.approx(0.25)
    assert numbers["weight_share/advantage_positive"] == pytest.approx(0.75)


def test_effective_responses_counts_those_that_carry_the_weight():
    even = diagnose(GRPO, [1, 500, 20, 3], "aaaa", [1, 1, 1, 1])
    assert even["effective_responses"] == pytest.approx(4.0)
    assert even["effective_responses_fraction"] == pytest.approx(1.0)
    # Shares 1/4 and 3/4: entropy 0.5623 nats.
    uneven = diagnose(DAPO, [1, 3], "aa", [1, 1])
    assert uneven["effective_responses"] == pytest.approx(4 * 3 ** (-3 / 4))
    assert uneven["effective_responses_fraction"] == pytest.approx(2 * 3 ** (-3 / 4))


def test_a_group_without_signal_has_only_zero_advantages_and_counts_once():
    numbers = diagnose(GRPO, [1, 1, 1, 1, 0, 1], "aabbcd", [0, 0, 1, -1, 5, 0])
    assert numbers["groups_without_signal"] == pytest.approx(
        2 / 3
    )  # a and d of a, b, d; c has no row that counts


def test_verdicts_split_everything_and_rows_that_do_not_count_are_outside():
    numbers = diagnose(DAPO, [2, 4, 0, 2], "aaaa", [1, -1, 1, 1], verdicts=[True, False, False, None])
    assert numbers["weight_share/verdict_true"] == pytest.approx(0.25)
    assert numbers["weight_share/verdict_false"] == pytest.approx(0.5)
    assert numbers["weight_share/verdict_none"] == pytest.approx(0.25)
    assert numbers["weight_share/advantage_positive_verdict_none"] == pytest.approx(0.25)
    assert numbers["weight_share/advantage_negative_verdict_false"] == pytest.approx(0.5)
    assert numbers["response_length/verdict_false"] == 4.0
    only_true = diagnose(DAPO, [2, 2], "aa", [1, -1], verdicts=[True, True])
    assert "response_length/verdict_false" not in only_true
    assert only_true["weight_share/verdict_false"] == 0.0


def test_the_numbers_of_the_mode_are_told():
    assert diagnose(resolve_mode("balanced:0.4"), [1, 2], "aa", [1, -1])["eta"] == 0.4
    numbers = diagnose(resolve_mode("vl_norm:0.75:128"), [1, 2], "aa", [1, -1])
    assert (numbers["alpha"], numbers["max_length"]) == (0.75, 128.0)
    shares = [numbers[f"weight_share/length_q{q}"] for q in (1, 2, 3, 4)]
    assert sum(shares) == pytest.approx(1.0)  # shares, although the mass of vl_norm is not 1


def test_a_step_in_which_no_row_counts_has_nothing_to_say():
    assert diagnose(GRPO, [0, 0], "ab", [1, 1]) == {}
    assert diagnose(GRPO, [], "", []) == {}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4000),
            st.integers(0, 4),
            st.sampled_from([-1.0, 0.0, 0.5]),
            st.sampled_from([True, False, None]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from(
        ["grpo", "dapo", "balanced:0.3", "balanced@batch", "dr_grpo:4000", "vl_norm:1:4000@batch"]
    ),
)
def test_every_partition_of_the_rows_has_shares_that_add_up_to_one(rows, spec):
    lengths, groups, advantages, verdicts = map(list, zip(*rows, strict=True))
    numbers = diagnose(resolve_mode(spec), lengths, groups, advantages, verdicts)
    if not any(lengths):
        assert numbers == {}
        return
    for part in ("length_q", "advantage_", "verdict_"):
        whole = [
            value
            for name, value in numbers.items()
            if name.startswith(f"weight_share/{part}") and "_verdict_" not in name
        ]
        assert math.fsum(whole) == pytest.approx(1.0)
    split = [
        value
        for name, value in numbers.items()
        if name.startswith("weight_share/length_q") and "_verdict_" in name
    ]
    assert math.fsum(split) == pytest.approx(1.0)
    counted = sum(length > 0 for length in lengths)
    assert 1 - 1e-9 <= numbers["effective_responses"] <= counted * (1 + 1e-9)
