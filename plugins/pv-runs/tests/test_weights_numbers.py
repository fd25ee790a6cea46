"""`pv-rl weights`: the numbers, by hand and for any lengths."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pv_rl.errors import DataError, LossModeError, SetupError
from pv_runs.weights import Rollouts, read_lengths, summarise


def rollouts(lengths, groups=None, **known):
    return Rollouts(lengths=lengths, groups=groups or [0] * len(lengths), source="test", **known)


def test_one_prompt_by_hand():
    summary = summarise(rollouts([1, 2, 5]), ["grpo", "dapo", "balanced:0.6"])
    grpo, dapo, balanced = summary.modes
    assert [mode.spec for mode in summary.modes] == ["grpo@prompt", "dapo@prompt", "balanced:0.6@prompt"]
    assert balanced.weights == pytest.approx([0.25, 0.15, 0.09])
    assert balanced.shares == pytest.approx([0.25, 0.30, 0.45])
    assert grpo.shares == pytest.approx([1 / 3] * 3)
    assert grpo.effective_responses == pytest.approx(3)
    assert dapo.weights == pytest.approx([1 / 8] * 3)
    assert dapo.largest_share == pytest.approx(5 / 8)
    # exp of the entropy of 1/8, 2/8, 5/8: 8^(1/8) * 4^(2/8) * (8/5)^(5/8)
    assert dapo.effective_responses == pytest.approx(8**0.125 * 4**0.25 * 1.6**0.625)
    assert (summary.prompts, summary.responses, summary.tokens) == (1, 3, 8)


@pytest.mark.parametrize(
    ("scores", "weights"),
    [
        ([1.0, 0.0, 0.0, None], [1 / 3, 2 / 21, 2 / 21, 0]),  # + - -
        (
            [0.1, 0.1, 0.1, None],
            [1 / 8, 1 / 8, 1 / 8, 0],
        ),  # their mean is 0.1, whose sum in float64 is more than 0.3
    ],
)
def test_balanced_aggregation_takes_its_signs_from_the_scores(scores, weights):
    summary = summarise(rollouts([1, 2, 5, 0], scores=scores), ["ba", "dapo"])
    assert summary.modes[0].weights == pytest.approx(weights)
    assert summary.modes[1].weights == pytest.approx([1 / 8, 1 / 8, 1 / 8, 0])
    assert summary.notes == ("ba@prompt is given the sign of the score minus its prompt's mean.",)


@pytest.mark.parametrize("scores", [None, [1.0, None, 0.0]])
def test_balanced_aggregation_without_a_score_is_refused(scores):
    with pytest.raises(DataError, match=r"ba@prompt uses the signs .* not every response has a score"):
        summarise(rollouts([1, 2, 5], scores=scores), ["dapo", "ba"])


def test_prompts_share_the_update_and_batch_scope_ignores_them():
    prompt, batch = summarise(rollouts([1, 3, 4, 12], [0, 0, 1, 1]), ["dapo", "dapo@batch"]).modes
    assert prompt.weights == pytest.approx([1 / 8, 1 / 8, 1 / 32, 1 / 32])
    assert batch.weights == pytest.approx([1 / 20] * 4)


def test_a_response_of_length_zero_counts_for_nothing():
    summary = summarise(rollouts([0, 2, 2, 0], [0, 1, 1, 2]), ["grpo"])
    assert summary.modes[0].weights == pytest.approx([0, 1 / 4, 1 / 4, 0])
    assert (summary.prompts, summary.responses) == (1, 2)
    assert summary.modes[0].effective_responses == pytest.approx(2)
    assert [(part.name, part.responses) for part in summary.parts] == [("2 tokens", 2)]


def test_shares_are_of_the_modes_own_mass():
    """A token weighs 1/30 each."""
    summary = summarise(rollouts([1, 2, 5]), ["dr_grpo:10"])
    (mode,) = summary.modes
    assert mode.mass == pytest.approx(8 / 30)
    assert mode.shares == pytest.approx([1 / 8, 2 / 8, 5 / 8])
    assert [part.weight[mode.spec] for part in summary.parts] == pytest.approx([1 / 30] * 3)


def test_a_mode_that_gives_no_weight_is_an_error(monkeypatch):
    import torch

    import pv_rl.losses

    monkeypatch.setattr(pv_rl.losses, "response_weights", lambda *_: torch.zeros(3).double())
    with pytest.raises(LossModeError, match="dapo@prompt gives every response weight 0"):
        summarise(rollouts([1, 2, 5]), ["dapo"])


def test_quarters_of_the_length_by_hand():
    summary = summarise(rollouts([8, 1, 2, 3, 4, 5, 6, 7]), ["dapo"])
    assert [(part.name, part.responses, part.tokens) for part in summary.parts] == [
        ("1 to 2 tokens", 2, 3),
        ("3 to 4 tokens", 2, 7),
        ("5 to 6 tokens", 2, 11),
        ("7 to 8 tokens", 2, 15),
    ]
    assert [part.share["dapo@prompt"] for part in summary.parts] == pytest.approx(
        [3 / 36, 7 / 36, 11 / 36, 15 / 36]
    )
    assert [part.weight["dapo@prompt"] for part in summary.parts] == pytest.approx([1 / 36] * 4)


def test_the_mean_weight_of_a_part_is_over_its_tokens():
    summary = summarise(rollouts([1, 2, 5], verdicts=[True, True, False]), ["grpo"])
    true, false = [part for part in summary.parts if part.kind == "verdict"]
    assert true.weight["grpo@prompt"] == pytest.approx((1 / 3 + 2 * 1 / 6) / 3)
    assert false.weight["grpo@prompt"] == pytest.approx(1 / 15)


def test_equal_lengths_are_in_one_quarter():
    summary = summarise(rollouts([9] * 7 + [3]), ["grpo"])
    assert [(part.name, part.responses) for part in summary.parts] == [("3 to 9 tokens", 8)]


def test_verdicts_and_scores_by_hand():
    known = {"verdicts": [True, False, None], "scores": [1.0, 0.0, None]}
    summary = summarise(rollouts([1, 2, 5], **known), ["dapo"])
    shares = {part.name: part.share["dapo@prompt"] for part in summary.parts if part.kind != "length"}
    assert shares == {
        "verdict True": pytest.approx(1 / 8),
        "verdict False": pytest.approx(2 / 8),
        "no verdict": pytest.approx(5 / 8),
        "score 1": pytest.approx(1 / 8),
        "score 0": pytest.approx(2 / 8),
        "no score": pytest.approx(5 / 8),
    }


def test_scores_of_many_values_are_told_apart_by_sign():
    summary = summarise(rollouts([1, 1, 1, 1, 1, 1], scores=[-1.0, -0.5, 0.0, 0.1, 0.2, None]), ["dapo"])
    counts = [(part.name, part.responses) for part in summary.parts if part.kind == "score"]
    assert counts == [("score > 0", 2), ("score <= 0", 3), ("no score", 1)]


@settings(deadline=None)  # the machine may be busy
@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 4)), min_size=1, max_size=60).filter(
        lambda rows: any(length for length, _ in rows)
    ),
    st.sampled_from(["grpo", "dapo", "balanced", "balanced:0.2@batch", "dapo@batch"]),
)
def test_shares_and_parts_add_up_for_any_lengths(rows, spec):
    lengths, groups = zip(*rows, strict=True)
    summary = summarise(rollouts(lengths, groups, scores=[float(group) for group in groups]), [spec])
    (mode,) = summary.modes
    assert mode.mass == pytest.approx(1)
    assert sum(mode.shares) == pytest.approx(1)
    assert 1 - 1e-9 <= mode.effective_responses <= summary.responses + 1e-9
    assert mode.largest_share >= 1 / mode.effective_responses - 1e-9
    for kind in ("length", "score"):
        parts = [part for part in summary.parts if part.kind == kind]
        assert sum(part.responses for part in parts) == summary.responses
        assert sum(part.tokens for part in parts) == summary.tokens
        assert math.fsum(part.share[mode.spec] for part in parts) == pytest.approx(1)
    assert len([part for part in summary.parts if part.kind == "length"]) <= 4


def test_a_mode_that_is_given_twice_is_taken_once_and_verls_names_are_said():
    summary = summarise(rollouts([1, 2]), ["balanced", "balanced:0.6", "token-mean", "seq-mean-token-mean"])
    assert [mode.spec for mode in summary.modes] == ["balanced:0.6@prompt", "dapo@batch", "grpo@batch"]
    assert "token-mean is verl's name for dapo@batch." in summary.notes
    assert "seq-mean-token-mean is verl's name for grpo@batch." in summary.notes


def test_no_token_at_all_is_an_error():
    with pytest.raises(DataError, match="no response has any tokens"):
        summarise(rollouts([0, 0]), ["grpo"])


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SetupError, match="pip install torch"):
        summarise(rollouts([1, 2, 5]), ["grpo"])


def test_typed_lengths_are_a_prompt_for_each_option_and_between_semicolons():
    given = read_lengths(["1,2, 5;3 4", "7"])
    assert list(given.lengths) == [1, 2, 5, 3, 4, 7]
    assert list(given.groups) == [0, 0, 0, 1, 1, 2]
    assert given.source == "6 given lengths"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("1,x,3", "'x'"),
        ("4k", "'4k'"),
        ("1,-2", "'-2'"),
        ("1.5", "'1.5'"),
        ("1,,2", "''"),
        ("1,2;", "''"),
        ("", "''"),
        ("1_0", "'1_0'"),
        ("٣", "'٣'"),
        ("1000000001", "'1000000001'"),
        ("9" * 5000, "'999"),
    ],
)
def test_what_is_no_length_is_refused_with_an_example(text, field):
    with pytest.raises(DataError, match="which is not a length") as error:
        read_lengths(["3", text])
    assert f"holds {field}" in str(error.value)
    assert "--lengths '1,2,5;3,4'" in str(error.value)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.lists(st.integers(0, 10**9), min_size=1, max_size=5), min_size=1, max_size=5))
def test_any_lengths_are_read_back(prompts):
    text = ";".join(",".join(map(str, prompt)) for prompt in prompts)
    given = read_lengths([text])
    assert list(given.lengths) == [length for prompt in prompts for length in prompt]
    assert list(given.groups) == [number for number, prompt in enumerate(prompts) for _ in prompt]
