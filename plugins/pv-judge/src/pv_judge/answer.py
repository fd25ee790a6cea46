"""Types of a question, and of its result: an answer, or a failure with its kind and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pv_rl.errors import JudgeError

__all__ = [
    "ANSWERED",
    "UNREADABLE",
    "Answer",
    "FailureKind",
    "JudgeFailure",
    "Messages",
    "Parser",
    "Question",
    "TokenLogprobs",
    "Usage",
]

Messages: TypeAlias = Sequence[Mapping[str, str]]
"""`[{"role": "system", "content": ...}, {"role": "user", "content": ...}]`."""

Parser: TypeAlias = Callable[[str], Any]
"""From the text of an answer to its value; raises `JudgeFailure` of kind `invalid_json` or `wrong_schema`."""

FailureKind: TypeAlias = Literal[
    "connect",  # no connection, or no TLS
    "timeout",  # connect, first byte or total
    "reset",  # the connection broke while the answer came
    "rate_limited",  # 429
    "server_error",  # 5xx, or an answer that is not HTTP
    "authentication",  # 401, 403: the endpoint does not accept the key
    "quota",  # 402, or an error code that names quota or billing: the account cannot pay
    "context_length",  # the prompt is longer than the model's context
    "client_error",  # any other 4xx, or a redirect
    "bad_response",  # HTTP 200 and no chat completion: not JSON, a key twice, no choices
    "no_text",  # a chat completion with thoughts or tool calls and no text
    "refusal",  # the model or a content filter declined
    "truncated",  # finish_reason length
    "too_large",  # more than max_answer_bytes
    "invalid_json",  # the model's text is empty, or not the JSON that was asked for
    "wrong_schema",  # it is JSON and not of the form that was asked for
    "deadline",  # deadline_s passed before a usable answer came
    "budget",  # a hard limit of the budget was reached; nothing was sent
]

UNREADABLE: frozenset[FailureKind] = frozenset({"invalid_json", "wrong_schema", "bad_response"})
"""The model answered and the answer cannot be read. With the same seed it would give the same answer again."""
ANSWERED: frozenset[FailureKind] = frozenset({*UNREADABLE, "truncated", "no_text"})
"""Failures that are answers, and were paid for."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a `JudgeService` is asked."""

    template: str
    """Name and hash of the prompt, part of the cache's key."""
    messages: Messages
    parse: Parser
    """A function of a module, so that it can travel between processes."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens that a server counted."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Of `prompt_tokens`, those that the server had cached."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, kw_only=True)
class TokenLogprobs:
    """One token of an answer as the server saw it."""

    token: str
    """As text."""
    top: Mapping[str, float]
    """Natural logs of the probabilities of the likeliest tokens and of this one, by their texts; -inf is possible."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A usable answer."""

    text: str
    """What the model wrote."""
    value: Any
    """What the parser made of it."""
    model: str
    """As configured, not as the server calls it."""
    endpoint: str
    """The URL of the endpoint that answered."""
    usage: Usage = field(default_factory=Usage)
    """Over all requests of the question, those that failed included."""
    usd: float = 0.0
    """Likewise; 0 for a model without a price, and no report shows it then."""
    requests: int = 1
    """Requests that were sent for it."""
    latency_s: float = 0.0
    """Of the whole question, waiting included."""
    cached: bool = False
    """It came from our own cache: no request was sent."""
    logprobs: tuple[TokenLogprobs, ...] = ()
    """Of each token, where the request asked for them (`logprobs`, `top_logprobs`) and the server gave them."""


class JudgeFailure(JudgeError):
    """There is no usable answer. It says what failed last, and what was spent by then."""

    def __init__(
        self,
        message: str,
        kind: FailureKind = "bad_response",
        usage: Usage = Usage(),
        usd: float = 0.0,
        requests: int = 0,
        text: str = "",
        status: int | None = None,
    ) -> None:
        super().__init__(message, kind, usage, usd, requests, text, status)  # args, so that it pickles
        self.kind: FailureKind = kind
        self.usage = usage
        self.usd = usd
        self.requests = requests
        self.text = text
        """What the model wrote, where it wrote something that cannot be used."""
        self.status = status
        """HTTP status of the last request that failed, where it got one."""

    def __str__(self) -> str:
        return str(self.args[0])
