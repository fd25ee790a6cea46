"""HTTP error classifier: the kind of failure that a status and the body of an error stand for.

A status alone is not enough: providers answer 429 both for a rate limit and for an account without money, and 400 for a
prompt that is too long. A kind that stops an endpoint for all rows (`quota`) is taken from the status and the error's
`code` and `type` only, never from its message, which may quote the trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pv_judge.answer import FailureKind

__all__ = ["error_of", "failure_kind"]

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


def error_of(raw: bytes) -> tuple[str, str]:
    """The codes and the message of an error body, as OpenAI, vLLM or FastAPI write it; of another, the text."""
    text = raw.decode("utf-8", "replace")
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "", text
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return "", str(error) if isinstance(error, str) else text
    codes = " ".join(str(error[name]) for name in ("code", "type") if error.get(name))
    message = error.get("message", error.get("detail"))
    return codes, message if isinstance(message, str) else text


def failure_kind(status: int, codes: str, message: str) -> FailureKind:
    """The kind of an HTTP status that is no success."""
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
