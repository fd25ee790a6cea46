"""Responses as a weighting sees them, and what a reader knows about them besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["MAX_LENGTH", "Rollouts"]

MAX_LENGTH = 10**9
"""Tokens. What is longer is no response but a mistake."""


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """The responses of one step; `B` of them, in the order in which they were given."""

    lengths: Sequence[int]
    """(B,) whole numbers >= 0 in `unit`; 0 for a row that does not count."""
    groups: Sequence[int]
    """(B,) number of the response's prompt: 0, 1, ... in order of appearance."""
    verdicts: Sequence[bool | None] | None = None
    """(B,) the trace's verdict, None for a missing one; None in all where no trace has a verdict."""
    scores: Sequence[float | None] | None = None
    """(B,) reward, None where there is no finite number; None in all where there are no scores."""
    unit: Literal["tokens", "words"] = "tokens"
    """What a length counts. Words are a stand-in where only text is there, and no tokenizer."""
    source: str
    """Where they are from, for titles."""
    notes: tuple[str, ...] = ()
    """How the source was read, where a reader might have expected something else."""
