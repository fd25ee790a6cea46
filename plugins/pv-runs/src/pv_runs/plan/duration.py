"""A length of time, with the formula that gave it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Duration"]


@dataclass(frozen=True, kw_only=True)
class Duration:
    """Seconds of a step."""

    name: str
    seconds: float
    how: str
    """The formula with its numbers put in."""
