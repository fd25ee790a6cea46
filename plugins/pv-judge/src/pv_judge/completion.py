"""Parser of a chat completion, and classifier of HTTP errors.

Bodies are untrusted: an incomplete or ambiguous one is refused.

A status alone does not give the kind of a failure: providers answer 429 both for a rate limit and for an account
without money, and 400 for a prompt that is too long. A kind that stops an endpoint for all rows (`quota`) is taken from
the status and the error's `code` and `type` only, never from its message, which may quote the trace.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pv_judge.answer import FailureKind, TokenLogprobs, Usage
from pv_judge.files import load_json
from pv_judge.json_answer import unambiguous

__all__ = ["Completion", "RequestFailed", "error_of", "estimate_tokens", "failure_kind", "read_completion"]

CHARACTERS_A_TOKEN = 4
BROKEN_OFF = ("abort", "error", "insufficient_system_resource")
"""Values of finish_reason, of vLLM, OpenRouter and DeepSeek, after which the text is not whole."""
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Fields of a message, and types of its parts, that contain thoughts of the model."""
LOWEST = -sys.float_info.max
"""Replaces a log-probability below the range of a float."""
ABSURD = 10**12
"""Replaces an invalid count, so that the budget books the highest cost of the request."""
BY_STATUS: dict[int, FailureKind] = {
    401: "authentication",
    402: "quota",
    403: "authentication",
    408: "timeout",
    429: "rate_limited",
}
QUOTA = re.compile(r"quota|billing|credit|payment|insufficient_(?:balance|funds)", re.IGNORECASE)
CONTENT = re.compile(r"content_?filter|content_policy|moderation|safety", re.IGNORECASE)
CONTEXT = re.compile(r"context[_ ](?:length|window|size)|prompt is too long|too many tokens", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The text of a completion, and its tokens."""

    text: str
    usage: Usage
    logprobs: tuple[TokenLogprobs, ...] = ()
    """Of each token, where the request asked for them and the server gave them."""


class RequestFailed(Exception):
    """One request without a completion. The client never raises it to its callers."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        usage: Usage | None = None,
        unsettled: bool = False,
        status: int | None = None,
        retry_after_s: float | None = None,
        text: str = "",
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.usage = usage
        """Its tokens, estimated if the server may bill it without a count; None: it was not sent."""
        self.unsettled = unsettled
        """No complete answer came, so the server's bill is unknown."""
        self.status = status
        self.retry_after_s = retry_after_s
        self.text = text
        """What the model wrote, if it did."""


def estimate_tokens(text: str | bytes) -> int:
    """A token for four characters."""
    return len(text) // CHARACTERS_A_TOKEN + 1


def read_completion(raw: bytes, prompt_tokens: int) -> Completion:
    """Read the body of an HTTP 200. `prompt_tokens` is our estimate, for a server that counts none.

    Raises:
        RequestFailed: `bad_response`, `refusal`, `truncated`, `no_text`, `invalid_json` where the text is empty,
            `server_error` where the server broke off the answer, or what an error in the body says.
    """
    paid = Usage(prompt_tokens=prompt_tokens, completion_tokens=estimate_tokens(raw))
    try:
        body = load_json(raw, object_pairs_hook=unambiguous)
    except ValueError as error:
        raise RequestFailed(
            "bad_response", f"the body is not JSON: {type(error).__name__}: {str(error)[:100]}", usage=paid
        ) from None
    if not isinstance(body, Mapping):
        raise RequestFailed("bad_response", "the body is JSON and not an object", usage=paid)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        usage = _usage(body.get("usage"), Usage(prompt_tokens=prompt_tokens))
        if body.get("error"):
            raise _error_in(body["error"], raw, usage)
        raise RequestFailed("bad_response", "the body has no choices[0].message", usage=usage)
    finish, (text, refusal) = choice.get("finish_reason"), _text_of(message)
    estimate = Usage(prompt_tokens=prompt_tokens, completion_tokens=estimate_tokens(text))
    usage = _usage(body.get("usage"), estimate)
    if refusal or finish == "content_filter":
        said = refusal if isinstance(refusal, str) else finish
        raise RequestFailed("refusal", f"the model declined: {said}", usage=usage, text=text)
    if finish == "length":
        raise RequestFailed("truncated", "the answer was cut at max_tokens", usage=usage, text=text)
    if finish in BROKEN_OFF:
        raise RequestFailed("server_error", f"finish_reason is {finish}", usage=usage, text=text)
    if not text.strip():
        # A model that wrote nothing may write a text next time; one that only thought would think again.
        empty = isinstance(message.get("content"), str) and not any(
            map(message.get, (*THOUGHTS, "tool_calls"))
        )
        given = ", ".join(sorted(str(name)[:40] for name in list(message)[:10] if message[name])) or "nothing"
        said = f"choices[0].message has no text in content; it has {given}"
        raise RequestFailed("invalid_json" if empty else "no_text", said, usage=usage)
    return Completion(text=text, usage=usage, logprobs=_logprobs(choice.get("logprobs")))


def _error_in(error: Any, raw: bytes, usage: Usage) -> RequestFailed:
    """The failure that the body of an HTTP 200 reports."""
    codes, message = error_of(raw)
    status = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(status, int) and 400 <= status < 600:
        kind = failure_kind(status, codes, message)
        return RequestFailed(kind, f"HTTP 200 with error {status}: {message}", usage=usage, status=status)
    said = f"the body has an error and no choices[0].message: {codes} {message}"
    return RequestFailed("bad_response", said, usage=usage)


def _text_of(message: Mapping[str, Any]) -> tuple[str, Any]:
    """The text of a message and its refusal. Content in parts is text if all parts are text or thoughts."""
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, str):
        return _storable(content), refusal
    text = ""
    for one in content if isinstance(content, list) else [None]:
        part: Mapping[str, Any] = one if isinstance(one, Mapping) else {}
        kind = part.get("type")
        if kind == "text" and isinstance(part.get("text"), str):
            text += part["text"]
        elif kind == "refusal":
            refusal = refusal or part.get("refusal") or kind
        elif kind not in THOUGHTS:
            return "", refusal
    return _storable(text), refusal


def _logprobs(given: Any) -> tuple[TokenLogprobs, ...]:
    """Of all tokens or of none: a gap would shift the tokens after it."""
    content = given.get("content") if isinstance(given, Mapping) else None
    found = [_token(one) for one in content] if isinstance(content, list) else []
    return tuple(one for one in found if one is not None) if None not in found else ()


def _token(given: Any) -> TokenLogprobs | None:
    if not isinstance(given, Mapping) or not isinstance(given.get("token"), str):
        return None
    top: dict[str, float] = {}
    others = given.get("top_logprobs") or []
    for one in [given, *(others if isinstance(others, list) else [None])]:
        if not isinstance(one, Mapping) or not isinstance(one.get("token"), str):
            return None
        value = one.get("logprob")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 0.001:
            return None  # NaN, a probability, a text
        top.setdefault(one["token"], float(max(value, LOWEST)))
    return TokenLogprobs(token=given["token"], top=top)


def _usage(given: Any, estimate: Usage) -> Usage:
    """The server's counts: `ABSURD` for an invalid one, the estimate for a missing one."""
    if not isinstance(given, Mapping):
        return estimate
    details = given.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    if cached is None:
        cached = given.get("prompt_cache_hit_tokens")  # of DeepSeek
    prompt, cached = _count(given.get("prompt_tokens"), estimate.prompt_tokens), _count(cached, 0)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=_count(given.get("completion_tokens"), estimate.completion_tokens),
        cached_tokens=0 if cached == ABSURD else min(cached, prompt),  # fewer cost more
    )


def _count(given: Any, otherwise: int) -> int:
    if given is None:
        return otherwise
    is_count = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < ABSURD
    return given if is_count else ABSURD


def _storable(text: str) -> str:
    """Replace lone surrogates, which JSON allows and SQLite and Parquet do not."""
    return text.encode("utf-8", "replace").decode()


def error_of(raw: bytes) -> tuple[str, str]:
    """The codes and the message of an error body of OpenAI, vLLM or FastAPI; else no code and the text."""
    text = raw.decode("utf-8", "replace")
    try:
        body: Any = load_json(text)
    except ValueError:
        return "", text
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return "", str(error) if isinstance(error, str) else text
    codes = " ".join(str(error[name]) for name in ("code", "type") if error.get(name))
    message = error.get("message", error.get("detail"))
    return codes, message if isinstance(message, str) else text


def failure_kind(status: int, codes: str, message: str) -> FailureKind:
    """The kind of an HTTP status of 300 or more."""
    if status >= 500:
        return "server_error"
    if status >= 400:
        if CONTENT.search(codes):
            return "refusal"
        if QUOTA.search(codes) and "rate_limit" not in codes:
            return "quota"
        if status in (400, 413, 422) and CONTEXT.search(f"{codes} {message}"):
            return "context_length"
    return BY_STATUS.get(status, "client_error")
