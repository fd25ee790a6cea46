"""See the package."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class StructuredOutputsParams:
    """The form that an answer is held to."""

    regex: str | None = None
