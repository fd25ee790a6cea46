"""Something that the plan has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Finding", "Severity"]

Severity: TypeAlias = Literal["does not fit", "does not run", "warning", "note"]
"""`does not fit`: memory. `does not run`: verl or vLLM stops with an error. `warning`: it runs, and hardly as meant."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One of them."""

    severity: Severity
    text: str
    overrides: tuple[str, ...] = ()
    """What helps, as arguments of the command line."""
