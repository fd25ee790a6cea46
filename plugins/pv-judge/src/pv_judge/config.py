"""Judge settings. They contain no API key, only the name of the environment variable that holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic.dataclasses import dataclass

from pv_judge.config_errors import explain
from pv_rl.errors import ConfigError

__all__ = [
    "KEY_LIKE",
    "STRICT",
    "Breaker",
    "Budget",
    "Endpoint",
    "Hedging",
    "JudgeConfig",
    "Limits",
    "Price",
    "Retries",
    "Timeouts",
    "read_config",
]

FORBIDDEN = frozenset({"n", "best_of", "stream", "stream_options", "model", "messages"})

STRICT = ConfigDict(
    extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, hide_input_in_errors=True
)

KEY_LIKE = re.compile(
    r"\b(?:sk|gsk|hf|ghp|xai|nvapi|[spr]k[-_](?:live|test))[-_](?=[\w-]{0,99}\d)[\w-]{16,}|\bAIza[\w-]{30}|\beyJ[\w-]{20}",
    re.ASCII,
)
"""Keys of the common providers, and JSON web tokens."""
RANDOM = re.compile(r"(?=[A-Z]{0,99}\d+[A-Z])[A-Z0-9]{16,}|[A-Z0-9]{33,}", re.IGNORECASE)
"""A part between underscores that is unlikely in a name: digits inside it, or very long."""
NO_KEY = (
    "it contains text that looks like an API key (not shown). Put the key into an environment variable and set "
    "api_key_env to the name of that variable"
)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Endpoint:
    """One OpenAI-compatible server."""

    url: str
    """Up to and without `/chat/completions`, for example `https://api.deepseek.com/v1`; `router` is the generative
    reward model that verl runs in the cluster (`reward.reward_model`)."""
    model: str
    """The model's name on the server."""
    api_key_env: str = ""
    """Environment variable that contains the key; empty for a server without keys."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, for example `{chat_template_kwargs: {enable_thinking: false}}`."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        if url != "router" and not url.startswith(("http://", "https://")):
            raise ValueError("expected an address that begins with http:// or https://, or `router`")
        if re.search(r"[@?#\s]", url):
            raise ValueError(
                "expected a plain address, without a key or password. Put the key into an environment variable and set "
                "api_key_env to its name"
            )
        try:
            parts = urlsplit(url)
            named = parts.port is None or parts.port > 0
            if url != "router" and not (named and (parts.hostname or "").encode("idna")):
                raise ValueError("no host")
        except ValueError:  # also a UnicodeError of idna; its text may quote anything
            raise ValueError(
                "it has no valid host and port. Expected http://HOST:PORT/v1, with an IPv6 address in brackets and a "
                "port from 1 to 65535"
            ) from None
        return url.rstrip("/")

    @field_validator("url", "model", mode="after")
    @classmethod
    def _is_no_key(cls, text: str) -> str:
        if KEY_LIKE.search(text):
            raise ValueError(NO_KEY)
        return text

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if (
            not re.fullmatch(r"([A-Za-z_]\w*)?", name, re.ASCII)
            or KEY_LIKE.search(name)
            or any(map(RANDOM.fullmatch, name.split("_")))
        ):
            raise ValueError(
                "expected the name of an environment variable, such as JUDGE_API_KEY, not the key itself (not shown)"
            )
        return name

    @field_validator("extra_body")
    @classmethod
    def _adds(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return _request_fields(fields)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Timeouts:
    """Seconds that one request may take."""

    connect_s: float = Field(default=5.0, gt=0)
    """Until the connection is established."""
    first_byte_s: float = Field(default=60.0, gt=0)
    """From then until the first byte of the answer."""
    total_s: float = Field(default=90.0, gt=0)
    """From the start to the last byte, also for a server that sends slowly."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Retries:
    """Retries of a request that failed and may succeed later."""

    attempts: int = Field(default=6, ge=1)
    """Most requests of a question, the first included, over all endpoints."""
    backoff_s: float = Field(default=0.5, ge=0)
    """The first wait is random between 0 and this; the upper bound doubles with each further wait."""
    max_backoff_s: float = Field(default=20.0, ge=0)
    """The largest upper bound. A longer Retry-After of the server is honoured, up to the deadline."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Hedging:
    """A second request for the slow tail; the first answer counts and the other request is cancelled."""

    after_s: float | None = Field(default=None, gt=0)
    """Send the second request after so many seconds. Off by default, because both may be billed."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Limits:
    """Limits of one endpoint, for the whole run."""

    concurrency: int = Field(default=64, ge=1)
    """Requests at the same time."""
    adaptive: bool = True
    """Halve the concurrency on 429 or 503, and raise it again after successes."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """Tokens of prompt and answer; estimated before a request, corrected by what the server counts."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Breaker:
    """When the client stops sending requests to an endpoint."""

    failures: int = Field(default=8, ge=1)
    """The breaker opens after so many failures of the server in a row, and no request is sent."""
    probe_after_s: float = Field(default=5.0, gt=0)
    """Then one request is sent every so many seconds; the first success closes the breaker."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Budget:
    """Hard limits: a request that could exceed one is not sent."""

    usd_per_step: float | None = Field(default=None, ge=0)
    usd_per_run: float | None = Field(default=None, ge=0)
    calls_per_step: int | None = Field(default=None, ge=0)
    calls_per_run: int | None = Field(default=None, ge=0)

    @property
    def in_dollars(self) -> bool:
        """Whether there is a limit in dollars."""
        return self.usd_per_step is not None or self.usd_per_run is not None

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self.in_dollars or self.calls_per_step is not None or self.calls_per_run is not None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Price:
    """USD per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    """For prompt tokens that the server had cached (`prompt_tokens_details.cached_tokens`); `input` if not given."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class JudgeConfig:
    """Settings of a judge."""

    endpoints: tuple[Endpoint, ...] = Field(min_length=1)
    """In order of preference. The next is used while those before it are down or ask to wait (Retry-After), and for a
    question that failed there."""
    sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0, "max_tokens": 400})
    """Sampling parameters of the request, part of the cache's key."""
    response_format: Literal["json_object", "none"] = "json_object"
    """Value of the request's field `response_format`; `none` leaves the field out, for a server without it."""
    timeouts: Timeouts = Field(default_factory=Timeouts)
    deadline_s: float = Field(default=120.0, gt=0)
    """Most seconds of a question in total: waiting for a slot or a breaker, requests and retries."""
    retries: Retries = Field(default_factory=Retries)
    hedging: Hedging = Field(default_factory=Hedging)
    limits: Limits = Field(default_factory=Limits)
    breaker: Breaker = Field(default_factory=Breaker)
    budget: Budget = Field(default_factory=Budget)
    prices: dict[str, Price] = Field(default_factory=dict)
    """By model. A budget in dollars needs the price of every endpoint's model."""
    max_answer_bytes: int = Field(default=1_000_000, ge=1_000)
    """The client stops reading a longer answer."""
    cache: str | None = None
    """SQLite file of answers, shared by every run that names it; None: answers are kept in memory, for the run."""

    @field_validator("sampling")
    @classmethod
    def _samples(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return _request_fields(fields)

    @field_validator("prices", mode="before")
    @classmethod
    def _by_model(cls, prices: Any) -> Any:
        if isinstance(prices, Mapping) and any(
            isinstance(prices.get(name), int | float) for name in Price.__dataclass_fields__
        ):
            raise ValueError(
                "expected the prices of each model: write prices: {MODEL: {input: USD, output: USD}}, with the name of "
                "the endpoint's model"
            )
        return prices

    def __post_init__(self) -> None:
        if len({(endpoint.url, endpoint.model) for endpoint in self.endpoints}) < len(self.endpoints):
            raise ValueError("two endpoints have the same url and model")
        if self.budget.in_dollars and self.unpriced:
            raise ValueError(
                f"a budget in dollars needs a price for every model, and prices has none for {', '.join(self.unpriced)}"
            )

    @property
    def unpriced(self) -> list[str]:
        """Models without a price. If there are any, the cost of the judge is unknown."""
        return sorted({endpoint.model for endpoint in self.endpoints} - set(self.prices))


def _request_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Check the fields that a config adds to a request."""
    if taken := FORBIDDEN & fields.keys():
        names = ", ".join(sorted(taken))
        raise ValueError(
            f"{names} cannot be set: the client requests one complete answer of the endpoint's model"
        )
    try:
        text = json.dumps(fields, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"it cannot be written as JSON ({error})") from None
    if KEY_LIKE.search(text):
        raise ValueError(NO_KEY)
    return fields


def read_config(settings: Mapping[str, Any], kind: Any = JudgeConfig, name: str = "judge") -> Any:
    """Build a config of `kind` from a mapping, for example of a YAML file.

    Raises:
        ConfigError: (a ValueError) it lists every setting that is unknown, of a wrong type or out of bounds.
    """
    if not isinstance(settings, Mapping) or not all(isinstance(key, str) for key in settings):
        raise ConfigError(f"{name or 'the config'}: expected settings by name, each name a text")
    try:
        return kind(**settings)
    except ValidationError as error:
        # Also a key in the place of a setting's name.
        raise ConfigError(KEY_LIKE.sub("***", explain(error, kind, name))) from None
    except TypeError as error:
        raise ConfigError(f"{name or 'the config'}: {error}") from None
