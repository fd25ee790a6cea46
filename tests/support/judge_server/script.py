"""What the server does to whom: read from JSON, or built in a test."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {
    "status": "an error status: `status`, with `retry_after` (seconds or a date) and `text` if given",
    "reset": "RST in the middle of the body",
    "reset_at_once": "RST before the first byte",
    "hang": "accepts the request and never answers",
    "drip": "one byte of the body each `interval_s`, for ever",
    "not_http": "an answer that is not HTTP",
    "invalid_json": "HTTP 200 with half a JSON document",
    "wrong_schema": "HTTP 200 with JSON that is no chat completion",
    "empty_choices": "a chat completion without choices",
    "no_content": "a chat completion whose content is null",
    "content": "a chat completion in which the model wrote `text`",
    "refusal": "the model declines",
    "truncated": "finish_reason length",
    "huge": "a body of `size` bytes, 10 MB if not given",
    "endless": "a body that comes fast and never ends",
    "unauthorized": "401 that echoes the key",
    "raw": "`text` as it stands, from the status line on",
    "twice": "the right answer twice: in one write, or the second time after `interval_s`",
}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Whom it hits (all that is given has to hold), and with what. The first that fits is taken."""

    kind: str
    requests: Sequence[int] | None = None
    """Numbers of chat requests, from 1."""
    until_request: int | None = None
    """This one and those before it."""
    probability: float = 1.0
    from_s: float = 0.0
    """Seconds since the first chat request."""
    to_s: float = math.inf
    contains: str = ""
    """Only prompts with this text."""
    status: int = 500
    retry_after: str | float | None = None
    text: str = ""
    interval_s: float = 0.05
    size: int = 10_000_000

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no fault {self.kind!r}; there are {', '.join(KINDS)}")


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Seconds until the first byte: log-normal, or always `median_s` if `sigma` is 0."""

    median_s: float = 0.0
    sigma: float = 0.0

    def draw(self, rng: random.Random) -> float:
        return self.median_s * math.exp(self.sigma * rng.gauss(0.0, 1.0)) if self.sigma else self.median_s


@dataclass(frozen=True, kw_only=True)
class Script:
    """Everything that the server does."""

    faults: Sequence[Fault] = ()
    outages: Sequence[tuple[float, float]] = ()
    """From and to, seconds since the first chat request: connections are reset and new ones refused."""
    latency: Latency = Latency()
    seed: int = 0
    key: str = ""
    """If given, every other key gets 401."""
    marker: str = "ANOMALY"
    """A prompt with this text is not fluent."""
    kind: str = "local_loop"
    """The anomaly that is reported then."""
    model: str = "judge"
    cached_tokens: int | None = None
    """If given, reported as `prompt_tokens_details.cached_tokens`."""
    usage: bool | Mapping[str, Any] = True
    """Whether answers say how many tokens they took: a quarter of the characters, or what the mapping gives."""
    reply: Callable[[str, str], str] | None = None
    """From the text of the messages and the model's name to what it writes; for another judge than that of fluency."""
    logprobs: Callable[[str], list[dict[str, Any]]] | None = None
    """From what it writes to `logprobs.content`, one mapping a token."""

    @classmethod
    def read(cls, document: Mapping[str, Any] | str | Path) -> Script:
        """From a mapping, or from a JSON file that holds one."""
        settings = dict(document) if isinstance(document, Mapping) else json.loads(Path(document).read_text())
        settings["faults"] = [Fault(**one) for one in settings.get("faults", ())]
        settings["latency"] = Latency(**settings.get("latency", {}))
        return cls(**settings)

    def fault(self, number: int, elapsed_s: float, prompt: str) -> Fault | None:
        """The fault that request `number` meets. The same for the same seed, number and time."""
        for place, fault in enumerate(self.faults):
            if fault.requests is not None and number not in fault.requests:
                continue
            if fault.until_request is not None and number > fault.until_request:
                continue
            if not fault.from_s <= elapsed_s < fault.to_s or fault.contains not in prompt:
                continue
            if (
                fault.probability < 1
                and random.Random(f"{self.seed} {place} {number}").random() >= fault.probability
            ):
                continue
            return fault
        return None

    def latency_s(self, number: int) -> float:
        """Seconds that request `number` takes."""
        return self.latency.draw(random.Random(f"{self.seed} latency {number}"))
