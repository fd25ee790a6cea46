"""Model settings: `JudgeConfig` with defaults for long texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from pv_data.asking.local import Local, check_local
from pv_judge.config import STRICT, Budget, Endpoint, JudgeConfig, Limits, Timeouts

__all__ = ["AHEAD", "Model", "places", "share"]

AHEAD = 4
"""One further question is in the works for so many places at a model."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Model(JudgeConfig):
    """One model for all stages: behind endpoints, or local."""

    endpoints: tuple[Endpoint, ...] = ()
    """In order of preference: the next is used while those before it are down or ask to wait (Retry-After)."""
    local: Local | None = None
    """A checkpoint that the run serves itself, instead of endpoints."""
    revision: str = ""
    """Revision of the model, for the provenance and the cache: an API can change a model under its name. For a local
    model the hash of its weights is appended."""
    expected_tokens: int = Field(default=1000, ge=1)
    """Tokens of a usual answer, thoughts included. Only the estimate of a dry run uses it."""
    sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.6, "max_tokens": 8192})
    """Sampling parameters of the request, part of the cache's key."""
    response_format: Literal["json_object", "none"] = "none"
    """`json_object` makes the server answer in JSON: for a model that only judges."""
    timeouts: Timeouts = Field(default_factory=lambda: Timeouts(first_byte_s=600.0, total_s=1200.0))
    deadline_s: float = Field(default=3600.0, gt=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.endpoints) == (self.local is not None):
            given = "both are given" if self.endpoints else "neither is given"
            raise ValueError(
                f"a model needs either endpoints or a local checkpoint, and {given}. Give one of the two"
            )
        if self.local is not None:
            check_local(self.sampling, self.response_format, self.prices)

    @property
    def model(self) -> str:
        """Name of the preferred endpoint's model; of a local model the name of its folder."""
        return self.local.name if self.local is not None else self.endpoints[0].model

    def fields(self) -> str:
        """All fields of a request but model and messages, as JSON, for the provenance and the cache's key."""
        fields = {
            **self.sampling,
            **({"response_format": self.response_format} if self.response_format != "none" else {}),
            **(self.endpoints[0].extra_body if self.endpoints else {}),
            **({"revision": self.revision} if self.revision else {}),
        }
        return json.dumps(fields, sort_keys=True)

    @property
    def most_tokens(self) -> int | None:
        """Most tokens of an answer of any endpoint; None if a request sets no limit."""
        found = []
        for extra in [one.extra_body for one in self.endpoints] or [{}]:
            fields = {**self.sampling, **extra}
            limit = fields.get("max_completion_tokens", fields.get("max_tokens"))
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                return None
            found.append(limit)
        return max(found)

    @property
    def at_once(self) -> int:
        """Questions that can be at the client together: as many as the limits allow well within the deadline."""
        most = self.limits.concurrency
        minutes = self.deadline_s / 60 / 4  # a quarter of the deadline: the rest is for retries
        if self.limits.requests_per_minute is not None:
            most = min(most, int(self.limits.requests_per_minute * minutes))
        if self.limits.tokens_per_minute is not None:
            most = min(most, int(self.limits.tokens_per_minute * minutes / (self.most_tokens or 8192)))
        return max(1, most)

    @property
    def in_the_works(self) -> int:
        """Questions of a process at a time, including those being prepared or written to disk: more
        than `at_once` if only places are a limit, so that no place is empty meanwhile."""
        places = self.limits.concurrency
        return places + 1 + places // AHEAD if self.at_once == places else self.at_once


def places(concurrency: int, part: int, parts: int) -> int:
    """Places at a model that one of several processes has; all processes together have `concurrency`."""
    return concurrency // parts + (part < concurrency % parts)


def share(model: Model, part: int, parts: int, cache: Path) -> Model:
    """Settings of one of several processes: limits that add up to the model's, and the run's cache and budget."""
    limits = model.limits
    return replace(
        model,
        limits=Limits(
            concurrency=places(limits.concurrency, part, parts),
            adaptive=limits.adaptive,
            requests_per_minute=_divided(limits.requests_per_minute, parts),
            tokens_per_minute=_divided(limits.tokens_per_minute, parts),
        ),
        budget=Budget(),
        cache=model.cache or str(cache),
    )


def _divided(number: float | None, parts: int) -> float | None:
    return None if number is None else number / parts
