"""A model of the config: pv_rl's `JudgeConfig`, with defaults for long texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from pv_data.asking.local import Local, check_local
from pv_judge.config import STRICT, Budget, Endpoint, JudgeConfig, Limits, Timeouts

__all__ = ["Model", "places", "share"]


AHEAD = 4
"""To so many places at a model there is one question more in the works."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Model(JudgeConfig):
    """One model, as all stages ask it: behind endpoints, or local."""

    endpoints: tuple[Endpoint, ...] = ()
    """In order of preference: the next is used while those before it are down or have said when to come back."""
    local: Local | None = None
    """A checkpoint that the run serves itself, instead of endpoints."""
    revision: str = ""
    """Of the model, for the provenance and the cache: an API can change a model under its name. That of a local model
    is the hash of its weights, with what is given here before it."""
    expected_tokens: int = Field(default=1000, ge=1)
    """Of a usual answer, thoughts included: for the estimate of a dry run, nothing else."""
    sampling: dict[str, Any] = Field(default_factory=lambda: {"temperature": 0.6, "max_tokens": 8192})
    """Sampling parameters of the request, part of the cache's key."""
    response_format: Literal["json_object", "none"] = "none"
    """`json_object` has the server hold every answer to JSON: for a model that only judges."""
    timeouts: Timeouts = Field(default_factory=lambda: Timeouts(first_byte_s=600.0, total_s=1200.0))
    deadline_s: float = Field(default=3600.0, gt=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.endpoints) == (self.local is not None):
            given = "both are given" if self.endpoints else "neither is given"
            raise ValueError(
                f"a model has endpoints, or is local by a checkpoint on disk ({given}); give one of the two"
            )
        if self.local is not None:
            check_local(self.sampling, self.response_format, self.prices)

    @property
    def model(self) -> str:
        """The preferred endpoint's; of a local model the name of its folder."""
        return self.local.name if self.local is not None else self.endpoints[0].model

    def fields(self) -> str:
        """What of a request is neither model nor messages, as JSON: for the provenance and the cache's key."""
        fields = {
            **self.sampling,
            **({"response_format": self.response_format} if self.response_format != "none" else {}),
            **(self.endpoints[0].extra_body if self.endpoints else {}),
            **({"revision": self.revision} if self.revision else {}),
        }
        return json.dumps(fields, sort_keys=True)

    @property
    def most_tokens(self) -> int | None:
        """Of an answer of any of the endpoints; None where a request does not say."""
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
        """Questions that may wait at the client together: what the limits let through well within the deadline."""
        most = self.limits.concurrency
        minutes = self.deadline_s / 60 / 4  # a quarter of the deadline: the rest is for retries
        if self.limits.requests_per_minute is not None:
            most = min(most, int(self.limits.requests_per_minute * minutes))
        if self.limits.tokens_per_minute is not None:
            most = min(most, int(self.limits.tokens_per_minute * minutes / (self.most_tokens or 8192)))
        return max(1, most)

    @property
    def in_the_works(self) -> int:
        """Questions of a process at a time, those included that are made ready, or whose answer is on its way to the
        disk: more than `at_once` where only places are a limit, so that none stays empty meanwhile."""
        places = self.limits.concurrency
        return places + 1 + places // AHEAD if self.at_once == places else self.at_once


def places(concurrency: int, part: int, parts: int) -> int:
    """How many of a model's places one of several processes has; those of all add up."""
    return concurrency // parts + (part < concurrency % parts)


def share(model: Model, part: int, parts: int, cache: Path) -> Model:
    """The settings of one of several processes: limits that add up to the model's, and the run's cache and budget."""
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
