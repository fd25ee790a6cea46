"""Evaluation request: the options of `pv-eval run`, and how a verifier is sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pv_data.records import content_id
from pv_rl.errors import ConfigError
from pv_verdicts import VerdictFormat, build_format

__all__ = ["Request", "Sampling"]

TOP_LOGPROBS = 5
"""Alternatives at each token, the most that every server gives. A verdict's other word is nearly always among them."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling parameters; the defaults are the paper's. All but n are in the cache's key: a larger n adds samples."""

    n: int = 8
    """Samples a pair, 1 or more."""
    temperature: float = 0.6
    """0 to 5."""
    top_p: float = 0.9
    """Above 0, up to 1."""
    max_tokens: int = 8192
    """Of a trace; a longer one is truncated and has no verdict. The paper trains with up to 16,000."""
    seed: int = 0
    """`seed_of` derives the seed of each sample from it."""
    send_seed: bool = True
    """Whether requests carry the seed of their sample; False for a server that refuses the field."""
    logits: bool = False
    """Whether to ask for log-probabilities, from which a vote gets the logit of its verdict."""

    def __post_init__(self) -> None:
        for name, least in (("n", 1), ("max_tokens", 1), ("seed", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigError(f"{name} is {value!r}; give a whole number, {least} or more")
        if not 0 <= self.temperature <= 5:
            raise ConfigError(f"temperature is {self.temperature!r}; give a number from 0 to 5")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p!r}; give a number above 0, up to 1")

    def fields(self) -> dict[str, Any]:
        """The fields of a request."""
        sampled = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        return sampled | ({"logprobs": True, "top_logprobs": TOP_LOGPROBS} if self.logits else {})

    def seed_of(self, pair_id: str, sample: int) -> int:
        """The seed of a pair's sample, 0 to 2^31 - 1: each has its own, so that no two share their random numbers."""
        return int(content_id("sample seed", self.seed, pair_id, sample), 16) % 2**31


@dataclass(frozen=True, kw_only=True)
class Request:
    """One evaluation. `pv-eval run --help` describes each field."""

    set_spec: str
    verifier: str
    out: Path
    model: str = ""
    name: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    set_options: Mapping[str, Any] = field(default_factory=dict)
    train: Path | None = None
    overlap: str = "refuse"
    """One of `pv_eval.sets.overlap.ACTIONS`."""
    limit: int | None = None
    verdict_format: str = ""
    """Of `pv_verdicts`: how traces are asked for and read. Empty for `verdict`, where the set has no grades."""
    format_options: Mapping[str, Any] = field(default_factory=dict)
    prompt: Path | None = None
    """None for the format's."""
    reference: bool | None = None
    """Whether the prompt shows a pair's reference solution; None: where the pair has one and the prompt a place."""
    rubric: bool | None = None
    """The same for the marking scheme."""
    server: str = "auto"
    server_arguments: Sequence[str] = ()
    client: Sequence[str] = ()
    """Settings of `pv_data.asking.settings.Model`, `name=value`."""
    step: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of recorded traces: columns by name, see `pv_eval.verifiers.recorded.COLUMNS`."""

    @cached_property
    def form(self) -> VerdictFormat:
        """The verdict format.

        Raises:
            ConfigError: there is no such format, or an option is unknown or out of bounds.
        """
        return build_format(self.verdict_format or "verdict", self.format_options)
