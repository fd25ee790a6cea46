"""Parser of a chat completion, and classifier of HTTP errors: any bytes may come."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pv_judge.answer import Usage
from pv_judge.breaker import SERVER_FAILED
from pv_judge.completion import ABSURD, Completion, RequestFailed, error_of, failure_kind, read_completion


def body(message: object = None, usage: object = None, **choice: object) -> bytes:
    message = {"role": "assistant", "content": "yes"} if message is None else message
    answer = {"choices": [{"message": message, **choice}], "extra": {"x": 1}}
    return json.dumps(answer if usage is None else answer | {"usage": usage}).encode()


def failure_of(raw: bytes) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        read_completion(raw, 7)
    return caught.value


def test_fields_that_we_do_not_know_are_passed_over():
    completion = read_completion(body(usage={"prompt_tokens": 5, "completion_tokens": 2, "other": []}), 7)
    assert (completion.text, completion.usage) == ("yes", Usage(prompt_tokens=5, completion_tokens=2))


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 3}}, 3),
        ({"prompt_cache_hit_tokens": 4}, 4),
        ({"prompt_tokens_details": None, "prompt_cache_hit_tokens": 2}, 2),
        ({"prompt_tokens_details": {"cached_tokens": 99}}, 5),  # no more than the prompt has
    ],
)
def test_cached_tokens_are_found_where_servers_put_them(usage, cached):
    usage = {"prompt_tokens": 5, "completion_tokens": 1} | usage
    assert read_completion(body(usage=usage), 7).usage.cached_tokens == cached


@pytest.mark.parametrize("usage", [None, [], "many", {}, {"prompt_tokens": None}])
def test_counts_that_are_missing_are_estimated(usage):
    assert read_completion(body(usage=usage), 7).usage == Usage(prompt_tokens=7, completion_tokens=1)


@pytest.mark.parametrize("count", [-1, True, "5", 1.5, 1e400, 10**30, [5]])
def test_counts_that_are_none_are_as_large_as_the_budget_believes(count):
    """They get no discount for cached tokens either."""
    usage = {"prompt_tokens": count, "completion_tokens": 1, "prompt_cache_hit_tokens": count}
    assert read_completion(body(usage=usage), 7).usage == Usage(prompt_tokens=ABSURD, completion_tokens=1)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b"1" * 100_000,
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        body() + body(),
        body()[:-1] + b', "choices": []}',
        body().replace(b'"content"', b'"content": "no", "content"'),
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_what_is_no_completion_is_a_bad_response_and_its_prompt_is_paid(raw):
    failure = failure_of(raw)
    assert failure.kind == "bad_response"
    assert failure.usage.prompt_tokens == 7


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (body({"content": None, "refusal": "I will not."}), "refusal"),
        (body(finish_reason="content_filter"), "refusal"),
        (body(finish_reason="length"), "truncated"),
        (body({"content": None, "reasoning_content": "hm"}, finish_reason="length"), "truncated"),
        (body(finish_reason="insufficient_system_resource"), "server_error"),
        (body(finish_reason="abort"), "server_error"),
    ],
)
def test_an_answer_that_was_not_finished_says_why(raw, kind):
    assert failure_of(raw).kind == kind


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "yes"}], "yes"),
        (
            [
                {"type": "thinking", "thinking": "no"},
                {"type": "text", "text": "y"},
                {"type": "text", "text": "es"},
            ],
            "yes",
        ),
    ],
)
def test_text_in_parts_is_text_and_thoughts_are_not(content, text):
    assert read_completion(body({"content": content}), 7).text == text


THOUGHTS = {"reasoning_content": "It is fluent."}


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({}, "no_text"),
        ({"content": None}, "no_text"),
        ({"content": None} | THOUGHTS, "no_text"),
        ({"content": ""} | THOUGHTS, "no_text"),
        ({"content": " \n", "reasoning": "It is fluent."}, "no_text"),
        ({"content": "", "tool_calls": [{"id": "1"}]}, "no_text"),
        ({"content": {"fluent": True}}, "no_text"),
        ({"content": []}, "no_text"),
        ({"content": [{"type": "thinking", "thinking": "yes"}]}, "no_text"),
        ({"content": [{"type": "text", "text": "yes"}, {"type": "image_url"}]}, "no_text"),
        ({"content": [{"type": "text", "text": "yes"}, {"type": "text", "text": 3}]}, "no_text"),
        ({"content": [{"type": "refusal", "refusal": "no"}]}, "refusal"),
        ({"content": " \n"}, "invalid_json"),
    ],
)
def test_a_message_without_text_is_no_failure_of_the_server(message, kind):
    failure = failure_of(body(message))
    assert failure.kind == kind
    assert kind not in SERVER_FAILED


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "no credit", "code": 402}, "quota"),
        ({"message": "no such key", "code": 401}, "authentication"),
        ({"message": "overloaded", "code": 503}, "server_error"),
        ({"message": "no credit"}, "bad_response"),
        ("no credit", "bad_response"),
    ],
)
def test_an_error_in_the_body_of_http_200_is_repeated_and_has_its_kind(error, kind):
    failure = failure_of(json.dumps({"error": error}).encode())
    assert failure.kind == kind
    assert (error if isinstance(error, str) else error["message"]) in str(failure)


WHOLE = {
    "choices": [
        {
            "finish_reason": "stop",
            "logprobs": {
                "content": [
                    {"token": "a", "logprob": -1.0, "top_logprobs": [{"token": "b", "logprob": -2.0}]}
                ]
            },
            "message": {"content": [{"type": "text", "text": "yes"}], "refusal": None, "tool_calls": None},
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
}
FAILED = {"error": {"code": 429, "type": "quota", "message": "no more", "detail": "none"}}


def changed(value: object, odd: object) -> Iterator[object]:
    """The value with `odd` in the place of each of its parts, one at a time."""
    yield odd
    for key, one in value.items() if isinstance(value, dict) else ():
        yield from ({**value, key: other} for other in changed(one, odd))
    for at, one in enumerate(value) if isinstance(value, list) else ():
        yield from ([*value[:at], other, *value[at + 1 :]] for other in changed(one, odd))


ODD = [None, True, 0, -(10**400), -1e400, "", "\ud800", [], [[1]], {}, {"a": [1]}]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("whole", [WHOLE, FAILED], ids=["answer", "error"])
def test_a_value_of_any_type_in_any_place_is_read_or_refused(whole, odd):
    bodies = [json.dumps(one).encode() for one in changed(whole, odd)]
    assert len(bodies) > 4
    for raw in bodies:
        with suppress(RequestFailed):
            assert isinstance(read_completion(raw, 7), Completion)


@pytest.mark.parametrize("finish", ["stop", None, "eos", ["stop"], {}])
def test_other_ends_are_ends(finish):
    assert read_completion(body(finish_reason=finish), 7).text == "yes"


def test_half_a_surrogate_pair_does_not_break_what_stores_the_text():
    completion = read_completion(body({"content": "a\ud800b"}), 7)
    assert completion.text.encode() == b"a?b"


TOKEN = {
    "token": "a",
    "logprob": -0.1,
    "top_logprobs": [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -2}],
}


@pytest.mark.parametrize(
    "content",
    [
        None,
        "a",
        [TOKEN, {"token": "b"}],
        [TOKEN, {"token": 3, "logprob": -1}],
        [{**TOKEN, "logprob": 0.5}],
        [{**TOKEN, "logprob": float("nan")}],
        [{**TOKEN, "top_logprobs": ["b"]}],
        [{**TOKEN, "top_logprobs": 5}],
        [{**TOKEN, "top_logprobs": [{"token": "b", "logprob": "-1"}]}],
    ],
)
def test_log_probabilities_are_those_of_all_tokens_or_none(content):
    def read(given):
        answer = json.loads(body())
        answer["choices"][0]["logprobs"] = {"content": given}
        return read_completion(json.dumps(answer).encode(), 7).logprobs

    assert [(one.token, one.top) for one in read([TOKEN])] == [("a", {"a": -0.1, "b": -2.0})]
    assert read(content) == ()


def test_a_log_probability_of_a_thousand_digits_is_the_lowest_float():
    read = read_completion(body(logprobs={"content": [{"token": "a", "logprob": -(10**1000)}]}), 7)
    assert read.logprobs[0].top == {"a": -sys.float_info.max}


VLLM = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
GEMINI = "You exceeded your current quota, please check your plan and billing details. Please retry in 12s"


def openai(message: str = "", code: object = None, kind: object = None) -> str:
    return json.dumps({"error": {"message": message, "code": code, "type": kind}})


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, openai("no such key", "invalid_api_key"), "authentication"),
        (403, "<html>Forbidden</html>", "authentication"),
        (402, openai("Insufficient Balance"), "quota"),
        (429, openai(code="insufficient_quota"), "quota"),
        (429, openai(kind="exceeded_current_quota_error"), "quota"),
        (403, openai(code="billing_not_active"), "quota"),
        (429, openai("slow down", "rate_limit_exceeded", "tokens"), "rate_limited"),
        (429, openai(GEMINI, 429), "rate_limited"),  # a limit by the minute, in the words of a quota
        (429, "", "rate_limited"),
        (400, openai(code="context_length_exceeded"), "context_length"),
        (413, openai(code="context_length_exceeded"), "context_length"),
        (
            400,
            json.dumps({"object": "error", "message": VLLM, "type": "BadRequestError", "code": 400}),
            "context_length",
        ),
        (
            400,
            json.dumps({"error": {"message": VLLM, "type": "BadRequestError", "code": 400}}),
            "context_length",
        ),
        (422, json.dumps({"detail": "the prompt is too long"}), "context_length"),
        (400, openai("what is response_format?"), "client_error"),
        (400, openai("a trace about billing and quota"), "client_error"),  # quoted: no code says so
        (400, openai(code="content_filter"), "refusal"),
        (403, openai(kind="moderation"), "refusal"),
        (404, openai("no such model"), "client_error"),
        (302, "", "client_error"),
        (408, "", "timeout"),
        (500, openai(code="insufficient_quota"), "server_error"),
        (529, "", "server_error"),
        (400, "[" * 100_000, "client_error"),
        (400, "[1]", "client_error"),
        (401, '{"error": "who are you"}', "authentication"),
        (401, '{"error": {"message": {"a": 1}}}', "authentication"),
    ],
)
def test_an_error_is_named_by_its_status_and_what_the_body_says(status, body, kind):
    codes, message = error_of(body.encode())
    assert failure_kind(status, codes, message) == kind
