"""How a verifier is sampled: the paper's n = 8 at temperature 0.6 and top_p 0.9, and a seed of each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pv_data.records import content_id
from pv_rl.errors import ConfigError

__all__ = ["Sampling"]


TOP_LOGPROBS = 5
"""Alternatives at each token, the most that every server gives. A verdict's other word is nearly always among them."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Part of the cache's key, all of it but n: more samples of the same kind only add to those that are there."""

    n: int = 8
    """Samples a pair, 1 or more."""
    temperature: float = 0.6
    """0 or more."""
    top_p: float = 0.9
    """Above 0, up to 1."""
    max_tokens: int = 8192
    """Of a trace; a longer one is cut and has no verdict. The paper trains with up to 16,000."""
    seed: int = 0
    """Of the whole; the seed of a sample is drawn from it, see `seed_of`."""
    send_seed: bool = True
    """Whether requests carry the seed of their sample; False for a server that refuses the field."""
    logits: bool = False
    """Whether log-probabilities are asked for, from which a vote gets the logit of its verdict."""

    def __post_init__(self) -> None:
        whole = all(type(value) is int for value in (self.n, self.max_tokens, self.seed))
        if not whole or self.n < 1 or self.max_tokens < 1 or self.seed < 0:
            raise ConfigError(
                f"n={self.n!r}, max_tokens={self.max_tokens!r}, seed={self.seed!r}; whole numbers, the first two 1 or "
                "more, the seed 0 or more"
            )
        if not (0 <= self.temperature <= 5 and 0 < self.top_p <= 1):
            raise ConfigError(
                f"temperature={self.temperature!r}, top_p={self.top_p!r}; 0 to 5, and above 0 up to 1"
            )

    def fields(self) -> dict[str, Any]:
        """Of a request."""
        sampled = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        return sampled | ({"logprobs": True, "top_logprobs": TOP_LOGPROBS} if self.logits else {})

    def seed_of(self, pair_id: str, sample: int) -> int:
        """A seed of its own for each pair and sample, 0 to 2^31 - 1, so that no two share their random numbers."""
        return int(content_id("sample seed", self.seed, pair_id, sample), 16) % 2**31
