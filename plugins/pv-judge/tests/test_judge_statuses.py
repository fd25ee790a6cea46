"""What an HTTP error means, as providers write it."""

from __future__ import annotations

import json

import pytest

from pv_judge.completion import error_of, failure_kind

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
