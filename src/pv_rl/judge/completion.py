"""What stands in the body of a chat completion. Everything in it is the server's, and taken for untrusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pv_rl.judge.answer import FailureKind, TokenLogprobs, Usage

__all__ = ["Completion", "RequestFailed", "estimate_tokens", "read_completion"]

CHARACTERS_A_TOKEN = 4
ABSURD = 10**12
"""Stands for a count that is no count: the budget books the most that the request can have taken."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What the model wrote, and the tokens that it took."""

    text: str
    usage: Usage
    logprobs: tuple[TokenLogprobs, ...] = ()
    """Of each token, where the request asked for them and the server gave them."""


class RequestFailed(Exception):
    """One request that gave no completion. It never leaves the client."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        usage: Usage | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
        text: str = "",
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.usage = usage
        """What it took, estimated where the server may have counted and did not say; None: nothing was sent."""
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
        RequestFailed: `bad_response`, `refusal`, `truncated`, or `server_error` where the server broke off the answer.
    """
    paid = Usage(prompt_tokens=prompt_tokens, completion_tokens=estimate_tokens(raw))
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RequestFailed(
            "bad_response", f"the body is not JSON: {type(error).__name__}", usage=paid
        ) from None
    if not isinstance(body, Mapping):
        raise RequestFailed("bad_response", "the body is JSON and no object", usage=paid)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        usage = _usage(body.get("usage"), Usage(prompt_tokens=prompt_tokens))
        given = f"; it says {body['error']!s}" if body.get("error") else ""
        raise RequestFailed("bad_response", f"the body has no choices[0].message{given}", usage=usage)
    content, finish = message.get("content"), choice.get("finish_reason")
    text = _storable(content) if isinstance(content, str) else ""
    estimate = Usage(prompt_tokens=prompt_tokens, completion_tokens=estimate_tokens(text))
    usage = _usage(body.get("usage"), estimate)
    refusal = message.get("refusal")
    if refusal or finish == "content_filter":
        said = refusal if isinstance(refusal, str) else finish
        raise RequestFailed("refusal", f"the model declined: {said}", usage=usage, text=text)
    if finish == "length":
        raise RequestFailed("truncated", "the answer was cut at max_tokens", usage=usage, text=text)
    if finish == "insufficient_system_resource":  # of DeepSeek: it broke off for lack of capacity
        raise RequestFailed("server_error", f"finish_reason is {finish}", usage=usage, text=text)
    if not text.strip():
        raise RequestFailed("bad_response", "choices[0].message.content has no text", usage=usage)
    return Completion(text=text, usage=usage, logprobs=_logprobs(choice.get("logprobs")))


def _logprobs(given: Any) -> tuple[TokenLogprobs, ...]:
    """Of all tokens or of none: a gap would shift those behind it."""
    content = given.get("content") if isinstance(given, Mapping) else None
    found = [_token(one) for one in content] if isinstance(content, list) else []
    return tuple(one for one in found if one is not None) if None not in found else ()


def _token(given: Any) -> TokenLogprobs | None:
    if not isinstance(given, Mapping) or not isinstance(given.get("token"), str):
        return None
    top: dict[str, float] = {}
    for one in [given, *(given.get("top_logprobs") or [])]:
        if not isinstance(one, Mapping) or not isinstance(one.get("token"), str):
            return None
        value = one.get("logprob")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 0.001:
            return None  # NaN, a probability, a text
        top.setdefault(one["token"], float(value))
    return TokenLogprobs(token=given["token"], top=top)


def _usage(given: Any, estimate: Usage) -> Usage:
    """The server's counts, `ABSURD` where they are none, and the estimate where there are none."""
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
    """JSON may hold halves of surrogate pairs, which neither SQLite nor Parquet takes."""
    return text.encode("utf-8", "replace").decode()
