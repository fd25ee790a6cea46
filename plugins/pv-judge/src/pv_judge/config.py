"""Judge settings. They contain no API key, only the name of the environment variable that holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic.dataclasses import dataclass

from pv_rl.errors import ConfigError

__all__ = [
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
    """The model's name, as the server knows it."""
    api_key_env: str = ""
    """Environment variable that holds the key; none for a server that asks for none."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, for example `{chat_template_kwargs: {enable_thinking: false}}`."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        if url != "router" and not url.startswith(("http://", "https://")):
            raise ValueError("it begins with http:// or https://, or is `router`")
        if re.search(r"[@?#\s]", url):
            raise ValueError(
                "it is a plain address: a key or password does not belong in it; use api_key_env"
            )
        try:
            parts = urlsplit(url)
            named = parts.port is None or parts.port > 0
            if url != "router" and not (named and (parts.hostname or "").encode("idna")):
                raise ValueError("no host")
        except ValueError:  # also a UnicodeError of idna; its text may quote anything
            raise ValueError(
                "it has no valid host and port: give http://HOST:PORT/v1, an IPv6 address in brackets, a port from 1 "
                "to 65535"
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
    """Until the connection stands."""
    first_byte_s: float = Field(default=60.0, gt=0)
    """From then until the first byte of the answer."""
    total_s: float = Field(default=90.0, gt=0)
    """From the start to the last byte, however steadily it drips."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Retries:
    """What is done about a request that failed and may succeed later."""

    attempts: int = Field(default=6, ge=1)
    """Requests a question at most, the first included, over all endpoints."""
    backoff_s: float = Field(default=0.5, ge=0)
    """The first wait is random between 0 and this, each further one between 0 and twice that of before."""
    max_backoff_s: float = Field(default=20.0, ge=0)
    """The largest such wait. A server's Retry-After is honoured above it, up to the deadline."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Hedging:
    """A second request for the slow tail; the first answer counts and the other request is cancelled."""

    after_s: float | None = Field(default=None, gt=0)
    """Ask again where there is no answer after this long; off by default, because both may be billed."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Limits:
    """What the whole run asks of an endpoint at most."""

    concurrency: int = Field(default=64, ge=1)
    """Requests at the same time."""
    adaptive: bool = True
    """Halve the concurrency when the server says 429 or 503, and let it grow back by successes."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    """Tokens of prompt and answer; estimated before a request, corrected by what the server counts."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Breaker:
    """When an endpoint is left alone for a while."""

    failures: int = Field(default=8, ge=1)
    """So many requests in a row that the server failed open the breaker: nothing is sent any more."""
    probe_after_s: float = Field(default=5.0, gt=0)
    """Then one request is let through each time this has passed; the first success closes the breaker."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Budget:
    """Hard limits: a request that could pass one is not sent."""

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
        """Whether there is a limit at all."""
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
    """Everything about a judge but what it is asked."""

    endpoints: tuple[Endpoint, ...] = Field(min_length=1)
    """In order of preference. The next is used while those before it are down or ask to wait (Retry-After), and for a
    question that they failed."""
    sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.0, "max_tokens": 400})
    """Sampling parameters of the request, part of the cache's key."""
    response_format: Literal["json_object", "none"] = "json_object"
    """Whether the server is told to answer in JSON; `none` for one that does not know the field."""
    timeouts: Timeouts = Field(default_factory=Timeouts)
    deadline_s: float = Field(default=120.0, gt=0)
    """How long a question may take altogether: waiting for a turn, for a breaker to close, requests and retries."""
    retries: Retries = Field(default_factory=Retries)
    hedging: Hedging = Field(default_factory=Hedging)
    limits: Limits = Field(default_factory=Limits)
    breaker: Breaker = Field(default_factory=Breaker)
    budget: Budget = Field(default_factory=Budget)
    prices: dict[str, Price] = Field(default_factory=dict)
    """By model. A budget in dollars needs the price of every endpoint's model."""
    max_answer_bytes: int = Field(default=1_000_000, ge=1_000)
    """A longer answer is not read to its end."""
    cache: str | None = None
    """SQLite file of answers, shared by every run that names it; none: kept in memory, for the run."""

    @field_validator("sampling")
    @classmethod
    def _samples(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return _request_fields(fields)

    def __post_init__(self) -> None:
        if len({(endpoint.url, endpoint.model) for endpoint in self.endpoints}) < len(self.endpoints):
            raise ValueError("two endpoints have the same url and model")
        if self.budget.in_dollars and self.unpriced:
            raise ValueError(
                f"a budget in dollars needs a price for every model: prices has none for {', '.join(self.unpriced)}"
            )

    @property
    def unpriced(self) -> list[str]:
        """Models of endpoints without a price. If there are any, the cost of the judge is unknown."""
        return sorted({endpoint.model for endpoint in self.endpoints} - set(self.prices))


def _request_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields that may be added to a request."""
    if taken := FORBIDDEN & fields.keys():
        names = ", ".join(sorted(taken))
        raise ValueError(f"{names} cannot be set: one whole answer is asked for, of the endpoint's model")
    try:
        text = json.dumps(fields, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"it is no JSON ({error})") from None
    if KEY_LIKE.search(text):
        raise ValueError(NO_KEY)
    return fields


def read_config(settings: Mapping[str, Any], kind: Any = JudgeConfig, name: str = "judge") -> Any:
    """Build a config of `kind` from a mapping, as a YAML file gives it.

    Raises:
        ConfigError: (a ValueError) it names every setting that is unknown, of a wrong type or out of bounds.
    """
    try:
        return kind(**settings)
    except ValidationError as error:
        raise ConfigError(_explain(error, kind, name)) from None
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from None


def _explain(error: ValidationError, kind: Any, name: str) -> str:
    lines, allowed = [], {}
    for one in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in (name, *one["loc"]))
        lines.append(f"{place}: {one['msg'].removeprefix('Value error, ')}{_given(one)}")
        path, holder = _holder(kind, one["loc"])
        allowed[".".join((name, *path))] = ", ".join(holder.__dataclass_fields__)
    said = "; ".join(lines) + "".join(f". Settings of {where}: {names}" for where, names in allowed.items())
    return KEY_LIKE.sub("***", said)  # one that stands where the name of a setting belongs


def _holder(kind: Any, place: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """The innermost settings that a place is in, and the way to them."""
    found: tuple[list[str], Any] = ([], kind)
    hint: Any = kind
    for number, part in enumerate(place):
        if is_dataclass(hint):
            hint = get_type_hints(hint).get(str(part))
        else:  # of a mapping its values, of a list its elements
            inner = [one for one in get_args(hint) if one not in (str, int, ...)]
            hint = inner[0] if inner else None
        while get_origin(hint) in (Union, UnionType):
            hint = next((one for one in get_args(hint) if one is not type(None)), None)
        if hint is None:
            break
        if is_dataclass(hint) and number + 1 < len(place):
            found = ([str(one) for one in place[: number + 1]], hint)
    return found


def _given(one: Any) -> str:
    """The value that is wrong, where it cannot be a key: no setting that we do not know, nothing nested."""
    value = one["input"]
    known = one["type"] not in ("missing", "unexpected_keyword_argument", "value_error")
    return f" (given: {value!r})" if known and isinstance(value, bool | int | float | None) else ""
