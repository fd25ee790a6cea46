"""Weightings against numbers worked by hand, and against the paper's formula written out again."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pv_rl.errors import LossModeError
from pv_rl.losses import BatchStats, ResponseStats, resolve_mode, response_weights, step_stats, weighted_sum

ONE_PROMPT = [1, 2, 5]


def paper_weights(lengths: list[int], groups: list[int], eta: float) -> list[float]:
    """The paper's w^bal with the mean over prompts, in plain Python."""
    members = {g: [n for n, h in zip(lengths, groups, strict=True) if h == g and n > 0] for g in groups}
    prompts = sum(1 for rows in members.values() if rows)
    return [
        (eta / (len(members[g]) * n) + (1 - eta) / sum(members[g])) / prompts if n else 0.0
        for n, g in zip(lengths, groups, strict=True)
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("grpo", [1 / 3, 1 / 6, 1 / 15]),
        ("dapo", [1 / 8, 1 / 8, 1 / 8]),
        ("balanced", [0.25, 0.15, 0.09]),
        ("balanced:0", [1 / 8, 1 / 8, 1 / 8]),
        ("balanced:1", [1 / 3, 1 / 6, 1 / 15]),
        ("dr_grpo:10", [1 / 30, 1 / 30, 1 / 30]),
        ("vl_norm:0:10", [1 / 30, 1 / 30, 1 / 30]),
        ("vl_norm:1:10", [1 / 17, 1 / 34, 1 / 85]),  # 1, 1/2, 1/5 over ten times their sum, 1.7
    ],
)
def test_weights_of_one_prompt_are_those_worked_by_hand(spec, expected):
    assert response_weights(spec, ONE_PROMPT, "aaa").tolist() == pytest.approx(expected, abs=1e-15)


def test_prompts_share_the_mass_evenly_whatever_their_tokens():
    lengths = torch.tensor([1, 1, 100, 300])
    weights = response_weights("dapo", lengths, ["short", "short", "long", "long"])
    mass = weights * lengths
    assert mass[:2].sum().item() == pytest.approx(0.5)
    assert mass.tolist() == pytest.approx([0.25, 0.25, 0.125, 0.375])


def test_batch_scope_takes_all_rows_as_one_group():
    lengths, groups = [1, 3, 4], ["a", "a", "b"]
    assert response_weights("grpo@batch", lengths, groups).tolist() == pytest.approx([1 / 3, 1 / 9, 1 / 12])
    assert response_weights("dapo@batch", lengths, groups).tolist() == pytest.approx([1 / 8] * 3)


def test_scopes_agree_where_there_is_one_prompt():
    for name in ("grpo", "dapo", "balanced:0.3"):
        prompt, batch = (
            response_weights(f"{name}@{scope}", ONE_PROMPT, "aaa") for scope in ("prompt", "batch")
        )
        assert torch.equal(prompt, batch)


def test_a_row_of_length_zero_changes_nothing_for_the_others():
    for spec in ("grpo", "dapo", "balanced", "balanced:0.6@batch"):
        with_empty = response_weights(spec, [1, 0, 2, 5, 0], ["a", "a", "a", "a", "gone"])
        assert with_empty[[1, 4]].tolist() == [0.0, 0.0]
        assert torch.equal(with_empty[[0, 2, 3]], response_weights(spec, ONE_PROMPT, "aaa"))


def test_dr_grpo_and_vl_norm_of_several_prompts():
    lengths, groups = [1, 4, 4, 0], ["a", "a", "b", "b"]
    assert response_weights("dr_grpo:8", lengths, groups).tolist() == [1 / 32, 1 / 32, 1 / 16, 0.0]
    assert response_weights("dr_grpo:8@batch", lengths, groups).tolist() == [1 / 24, 1 / 24, 1 / 24, 0.0]
    by_prompt = response_weights("vl_norm:0.5:8", lengths, groups).tolist()
    assert by_prompt == pytest.approx([1 / 1.5 / 16, 0.5 / 1.5 / 16, 1 / 16, 0.0])
    as_one = response_weights("vl_norm:0.5:8@batch", lengths, groups).tolist()
    assert as_one == pytest.approx([1 / 2 / 8, 0.5 / 2 / 8, 0.5 / 2 / 8, 0.0])


def test_group_sums_need_the_groups():
    one = torch.ones(2)
    stats = ResponseStats(length=one, group_size=one, group_tokens=one)
    with pytest.raises(LossModeError, match="use step_stats"):
        resolve_mode("vl_norm:1:8").weights(stats, BatchStats(num_prompts=2, num_responses=2, num_tokens=2))


def test_balanced_aggregation_splits_a_prompt_by_the_signs_of_its_advantages():
    weights = response_weights("ba", ONE_PROMPT, "aaa", [0.9, -0.4, -0.5])
    assert weights.tolist() == pytest.approx([1 / 3, 2 / 21, 2 / 21], abs=1e-15)
    assert response_weights("ba", ONE_PROMPT, "aaa", [9e-60, -4e-60, -5e-60]).tolist() == weights.tolist()
    # Two prompts: one with signs + 0 -, and one of a single sign, which is dapo's.
    two = response_weights("ba", [2, 3, 4, 1, 7], "aaabb", torch.tensor([1e-9, 0.0, -5.0, -1, -1]))
    assert two.tolist() == pytest.approx([1 / 12, 1 / 18, 1 / 24, 1 / 16, 1 / 16], abs=1e-15)
    as_one = response_weights("ba@batch", [2, 3, 4, 1, 7], "aaabb", [1, 0, -5, -1, -1])
    assert as_one.tolist() == pytest.approx([1 / 10, 1 / 15, 3 / 60, 3 / 60, 3 / 60], abs=1e-15)


def test_a_row_that_does_not_count_is_of_no_sign():
    without = response_weights("ba", [2, 4], "aa", [1.0, -1.0])
    with_empty = response_weights("ba", [0, 2, 0, 4], "aaba", [float("nan"), 1.0, 5.0, -1.0])
    assert with_empty[[1, 3]].tolist() == without.tolist() == [1 / 4, 1 / 8]
    assert with_empty[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("advantages", "text"),
    [
        (None, "uses the signs of the advantages, and none were given"),
        ([1.0], "has shape (1,) and there are 3 responses"),
        (torch.ones(3, 5), "if tokens have advantages of their own, their sum"),
        ([1.0, float("nan"), 1.0], "advantage of response 1 is NaN"),
        (["+", "-", "-"], "not one number a response"),
    ],
)
def test_what_is_no_sign_is_refused(advantages, text):
    with pytest.raises(LossModeError, match=re.escape(text)):
        response_weights("ba", ONE_PROMPT, "aaa", advantages)


@pytest.mark.parametrize(
    ("alias", "spec"),
    [
        ("prompt_mean", "dapo@prompt"),
        ("token_mean", "dapo@batch"),
        ("seq_mean", "grpo@batch"),
        ("constant:4096", "dr_grpo:4096@batch"),
        ("luspo", "dr_grpo:1@batch"),
    ],
)
def test_an_alias_is_the_mode_that_it_stands_for(alias, spec):
    assert resolve_mode(alias).spec == spec
    with pytest.raises(LossModeError, match="write it without one"):
        resolve_mode(f"{alias}@prompt")


def test_a_step_in_which_no_row_counts_has_no_weight():
    assert response_weights("balanced", [0, 0], "ab").tolist() == [0.0, 0.0]
    assert response_weights("balanced", [], []).shape == (0,)


@given(
    rows=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 5)), min_size=1, max_size=64),
    eta=st.floats(0, 1),
)
def test_weights_equal_the_papers_formula_and_have_mass_one(rows, eta):
    lengths, groups = [n for n, _ in rows], [g for _, g in rows]
    weights = response_weights(f"balanced:{eta:f}", lengths, groups)
    assert weights.dtype == torch.float64
    assert weights.tolist() == pytest.approx(paper_weights(lengths, groups, float(f"{eta:f}")), rel=1e-12)
    if any(lengths):
        assert (weights * torch.tensor(lengths)).sum().item() == pytest.approx(1.0, abs=1e-12)


def test_mode_weights_are_a_function_of_statistics_alone():
    responses = ResponseStats(
        length=torch.tensor([2.0, 0.0, 4.0]),
        group_size=torch.tensor([2.0, 2.0, 2.0]),
        group_tokens=torch.tensor([6.0, 6.0, 6.0]),
    )
    totals = BatchStats(num_prompts=1, num_responses=2, num_tokens=6)
    assert resolve_mode("grpo").weights(responses, totals).tolist() == pytest.approx([0.25, 0.0, 0.125])
    # Half of a batch: the other half is in the totals only.
    twice = BatchStats(num_prompts=2, num_responses=4, num_tokens=12)
    assert resolve_mode("grpo").weights(responses, twice).tolist() == pytest.approx([0.125, 0.0, 0.0625])
    assert resolve_mode("dapo@batch").weights(responses, twice).tolist() == pytest.approx(
        [1 / 12, 0.0, 1 / 12]
    )


def test_step_stats_counts_rows_that_count():
    responses, totals = step_stats(torch.tensor([3, 0, 2, 7]), ["a", "a", "b", "b"])
    assert responses.group_size.tolist() == [1, 1, 2, 2]
    assert responses.group_tokens.tolist() == [3, 3, 9, 9]
    assert (totals.num_prompts, totals.num_responses, totals.num_tokens) == (2, 3, 12)


@pytest.mark.parametrize(
    ("lengths", "groups", "text"),
    [
        ([1, 2], "a", "2 .*1 group ids|\\(2,\\).* 1 group"),
        ([[1, 2]], "a", "\\(1, 2\\)"),
        ([1, -1], "ab", "response 1 is -1"),
        ([1.5, 1], "ab", "response 0 is 1.5"),
        ([float("nan")], "a", "nan"),
        ([float("inf")], "a", "inf"),
        (["one"], "a", "not numbers of tokens"),
        (None, "a", "not numbers of tokens"),
        ([1, 1], [["a"], ["b"]], "cannot tell prompts apart"),
        ([1, 1], [float("nan")] * 2, "cannot tell prompts apart"),
        ([1, 1], [torch.tensor(0), torch.tensor(0)], "cannot tell prompts apart"),
    ],
)
def test_lengths_that_make_no_step_are_refused(lengths, groups, text):
    with pytest.raises(ValueError, match=text):
        response_weights("balanced", lengths, groups)


def test_group_ids_may_be_a_tensor_an_array_or_any_sequence():
    expected = response_weights("dapo", [1, 2, 5, 4], "aabb")
    for groups in (torch.tensor([0, 0, 1, 1]), np.array(["x", "x", "y", "y"]), [(1, 2), (1, 2), None, None]):
        assert torch.equal(response_weights("dapo", [1, 2, 5, 4], groups), expected)


def test_weighted_sum_of_parts_adds_up_to_the_whole():
    generator = torch.Generator().manual_seed(0)
    loss = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    mask = (torch.arange(9) < torch.tensor([1, 9, 4, 2, 7, 3])[:, None]).long()
    weights = response_weights("balanced", mask.sum(-1), "aaabbb")
    whole = weighted_sum(loss, mask, weights)
    parts = sum(weighted_sum(loss[rows], mask[rows], weights[rows]) for rows in ([0, 4], [3, 1, 5], [2]))
    assert whole.item() == pytest.approx(parts.item(), abs=1e-14)
    assert whole.item() == pytest.approx(
        sum(weights[i].item() * loss[i, : mask[i].sum()].sum().item() for i in range(6))
    )


@pytest.mark.parametrize("weights", [(1,), (2,), (4,), (3, 1), (1, 3), ()])
def test_weighted_sum_takes_one_weight_for_each_row(weights):
    with pytest.raises(LossModeError, match="one weight for each row"):
        weighted_sum(torch.ones(3, 5), torch.ones(3, 5), torch.ones(weights))


@pytest.mark.parametrize("mask", [(1, 5), (3, 1), (3,), (5,)])
def test_weighted_sum_takes_a_mask_of_the_shape_of_the_losses(mask):
    with pytest.raises(LossModeError, match=r"loss_mask \(.*shapes \(B, L\), \(B, L\) and \(B,\)"):
        weighted_sum(torch.ones(3, 5), torch.ones(mask), torch.ones(3))


def test_weighted_sum_ignores_what_is_masked_even_nan_and_works_in_float32():
    loss = torch.tensor([[1.0, float("nan")], [2.0, 4.0]], dtype=torch.bfloat16, requires_grad=True)
    total = weighted_sum(loss, torch.tensor([[1, 0], [1, 1]]), torch.tensor([0.5, 0.25], dtype=torch.float64))
    total.backward()
    assert total.dtype == torch.float32
    assert total.item() == 2.0
    assert loss.grad is not None
    assert loss.grad.tolist() == [[0.5, 0.0], [0.25, 0.25]]
