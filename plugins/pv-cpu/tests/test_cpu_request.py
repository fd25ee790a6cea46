"""What a request may ask for, and what is said about the rest."""

import pickle

import pytest

from pv_cpu.errors import UnsupportedOnCpuError
from pv_cpu.rollout.request import parse

LIMITS = {"default_max_tokens": 20, "max_model_len": 32, "vocab_size": 50, "eos_token_ids": frozenset({2})}
VERL_PARAMS = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}


def test_the_parameters_that_verl_sends_are_taken():
    request = parse([5, 6], VERL_PARAMS, **LIMITS)
    assert (request.prompt, request.top_k, request.top_p, request.max_tokens) == ((5, 6), 0, 1.0, 20)
    assert request.stop_token_ids == {2}


@pytest.mark.parametrize(
    ("params", "prompt_length", "expected"),
    [
        ({}, 4, 20),
        ({"max_tokens": 7}, 4, 7),
        ({"max_new_tokens": 7}, 4, 7),
        ({"max_tokens": 99}, 30, 2),
        ({"max_tokens": 0}, 4, 1),
    ],
)
def test_max_tokens_is_what_was_asked_within_the_room_that_is_left(params, prompt_length, expected):
    assert parse([5] * prompt_length, params, **LIMITS).max_tokens == expected


@pytest.mark.parametrize(("temperature", "greedy"), [(0, True), (1e-6, True), (0.01, False)])
def test_temperature_zero_means_greedy(temperature, greedy):
    assert parse([5], {"temperature": temperature}, **LIMITS).greedy is greedy


def test_ignore_eos_leaves_only_the_stop_tokens_that_were_named():
    params = {"ignore_eos": True, "stop_token_ids": [9]}
    assert parse([5], params, **LIMITS).stop_token_ids == {9}


def test_a_seed_in_the_request_wins_over_the_servers():
    assert parse([5], {"seed": 0}, **LIMITS, seed=7).seed == 0
    assert parse([5], {}, **LIMITS, seed=7).seed == 7


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"repetition_penalty": 1.1}, "repetition_penalty=1.1 is not supported"),
        ({"guided_regex": "a+"}, "guided_regex='a\\+' is not supported .*temperature, top_p"),
        ({"temperature": -1}, "temperature=-1.0 is not allowed"),
        ({"top_p": 0}, "top_p=0.0 is not allowed"),
        ({"top_k": -2}, "top_k=-2 is not allowed"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(params, message):
    with pytest.raises(UnsupportedOnCpuError, match=message):
        parse([5], params, **LIMITS)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [([], "0 tokens does not fit"), ([5] * 32, "max_model_len=32"), ([50], "vocabulary of 50")],
)
def test_a_prompt_that_cannot_be_continued_is_refused(prompt, message):
    with pytest.raises(UnsupportedOnCpuError, match=message):
        parse(prompt, {}, **LIMITS)


def test_the_error_survives_the_way_through_ray():
    error = pickle.loads(pickle.dumps(UnsupportedOnCpuError("because")))
    assert (type(error), str(error)) == (UnsupportedOnCpuError, "because")
