"""`length`: too short or too long, in characters or in estimated tokens."""

from __future__ import annotations

import math
from typing import Literal

from pv_rl.errors import ConfigError

__all__ = ["CHARACTERS_PER_TOKEN", "length"]

CHARACTERS_PER_TOKEN = 2.5
"""Of mathematics in English with LaTeX. An estimate, no tokenizer is loaded: SmolLM2's makes a token of 2.2 characters
(Open Proof Corpus), 2.5 (OlympiadBench), 2.6 (GSM8K)."""


def length(
    text: str, low: int, high: int, *, unit: Literal["characters", "tokens"] = "characters"
) -> tuple[str, str] | None:
    """Reason and detail, if the text has fewer than `low` or more than `high` of the unit.

    Raises:
        ConfigError: bounds or a unit that cannot be.
    """
    if not 0 <= low <= high or unit not in ("characters", "tokens"):
        raise ConfigError(
            f"length from {low} to {high} {unit}; it is 0 <= low <= high, in characters or tokens"
        )
    size = len(text) if unit == "characters" else math.ceil(len(text) / CHARACTERS_PER_TOKEN)
    if low <= size <= high:
        return None
    return "too short" if size < low else "too long", f"{size} {unit}; {low} to {high} are taken"
