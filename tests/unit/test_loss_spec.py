"""Spec strings: what they mean, and errors that say what was given and what is allowed."""

from __future__ import annotations

import pickle

import pytest

from pv_rl.errors import LossModeError, PvRlError
from pv_rl.losses import resolve_mode


@pytest.mark.parametrize(
    ("spec", "name", "eta", "scope"),
    [
        ("grpo", "grpo", None, "prompt"),
        ("dapo@batch", "dapo", None, "batch"),
        ("balanced", "balanced", 0.6, "prompt"),
        ("balanced:0.4", "balanced", 0.4, "prompt"),
        ("balanced:1@batch", "balanced", 1.0, "batch"),
        ("balanced:.5@prompt", "balanced", 0.5, "prompt"),
        ("balanced:1e-3", "balanced", 0.001, "prompt"),
    ],
)
def test_a_spec_names_weighting_eta_and_scope(spec, name, eta, scope):
    mode = resolve_mode(spec)
    assert (mode.name, mode.eta, mode.scope) == (name, eta, scope)


def test_a_spec_may_give_several_numbers():
    mode = resolve_mode("vl_norm:0.75:16000@batch")
    assert mode.parameters == (("alpha", 0.75), ("max_length", 16000.0))
    assert mode.eta is None
    assert mode.spec == "vl_norm:0.75:16000@batch"


@pytest.mark.parametrize(
    "spec",
    [
        *("grpo", "dapo@batch", "balanced", "balanced:0.123456789012@batch", "balanced:1e-7"),
        *("dr_grpo:16000@batch", "vl_norm:0.75:128"),
    ],
)
def test_a_modes_own_spec_resolves_to_it(spec):
    mode = resolve_mode(spec)
    assert resolve_mode(mode.spec) == mode


@pytest.mark.parametrize(
    "eta",
    ["-0.1", "1.0001", "nan", "NaN", "inf", "-inf", "", " 0.5", "0_6", "0.5.5", "half", "+0.5", "٠.٥", "1e9"],
)
def test_an_eta_outside_the_unit_interval_is_refused(eta):
    with pytest.raises(LossModeError, match=r"has the eta .* a decimal number in \[0, 1\] \(0 weighs by"):
        resolve_mode(f"balanced:{eta}")


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("balancd", "Did you mean balanced"),
        ("GRPO", "Did you mean grpo"),
        (" dapo", "Did you mean dapo"),
        ("bal", "Did you mean balanced"),  # ba has fewer letters to change
        ("pro", "Did you mean prompt_mean"),
        ("seq-mean-token-mean", "It is verl's, and means grpo@batch."),
        ("token-sum", "It is verl's, and means a sum."),
        ("bnpo", "It is a loss_type of TRL. Use dapo@batch,"),
        ("sapo:0.5", "It is a loss_type of TRL. Set that, and loss_agg_mode to its aggregation, grpo@batch."),
        ("cispo", "to its aggregation, dapo@batch."),
        ("vespo@batch", "to its aggregation, dapo@batch."),
        ("sequence_mean", "Did you mean seq_mean"),  # SkyRL's
        ("seq_mean_token_sum_norm", "It is SkyRL's, and means dr_grpo:MAX_LENGTH@batch."),
        ("token_mean_legacy", "Did you mean token_mean"),
        ("zzz", ""),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_and_all(spec, hint):
    with pytest.raises(LossModeError, match="grpo, dapo, balanced") as error:
        resolve_mode(spec)
    assert repr(spec) in str(error.value)
    assert hint in str(error.value)
    assert hint or "Did you mean" not in str(error.value)


@pytest.mark.parametrize("spec", ["", ":0.5", "@batch", "balanced@batch@prompt", "balanced@batch:1"])
def test_a_spec_that_does_not_parse_is_answered_with_the_grammar(spec):
    with pytest.raises(LossModeError, match=r"NAME\[:NUMBER \.\.\.\]\[@SCOPE\]"):
        resolve_mode(spec)


@pytest.mark.parametrize("spec", [None, 0.6, ["balanced"], {"name": "balanced"}])
def test_a_spec_that_is_no_string_is_refused(spec):
    with pytest.raises(LossModeError, match="not a string"):
        resolve_mode(spec)


def test_an_unknown_scope_and_a_needless_eta_are_refused():
    with pytest.raises(LossModeError, match=r"Did you mean batch\?.* Scopes: prompt, batch"):
        resolve_mode("dapo@bath")
    with pytest.raises(LossModeError, match="Scopes: prompt, batch"):
        resolve_mode("dapo@")
    with pytest.raises(LossModeError, match="gives 1 numbers, but grpo takes none: write grpo"):
        resolve_mode("grpo:0.5")
    with pytest.raises(
        LossModeError, match=r"gives 2 numbers, but balanced takes eta: write balanced\[:ETA\]"
    ):
        resolve_mode("balanced:0.5:0.5")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("dr_grpo", r"does not give the max_length of dr_grpo \(tokens.*: write dr_grpo:MAX_LENGTH"),
        ("vl_norm:1", "does not give the max_length of vl_norm .*: write vl_norm:ALPHA:MAX_LENGTH"),
        ("dr_grpo:0", "has the max_length '0'; it is a decimal number of at least 1"),
        ("dr_grpo:1e400", "has the max_length '1e400'"),
        ("vl_norm:1.5:100", r"has the alpha '1.5'; it is a decimal number in \[0, 1\]"),
    ],
)
def test_a_number_that_is_needed_is_asked_for(spec, text):
    with pytest.raises(LossModeError, match=text):
        resolve_mode(spec)


def test_spec_errors_are_value_errors_of_ours_and_pickle():
    with pytest.raises(ValueError, match="balancd") as error:
        resolve_mode("balancd")
    assert isinstance(error.value, PvRlError)
    copy = pickle.loads(pickle.dumps(error.value))
    assert type(copy) is LossModeError
    assert str(copy) == str(error.value)
