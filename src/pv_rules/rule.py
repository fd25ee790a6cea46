"""Declaration of a degeneration rule by a decorator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pv_rl.hookspecs import DegenerationRule, Parameter, Span

__all__ = ["rule"]


def rule(
    meaning: str, **thresholds: tuple[Any, ...]
) -> Callable[[Callable[..., Iterable[Span]]], DegenerationRule]:
    """Decorator: the function, called with the text and its thresholds, becomes the rule of its name.

    Args:
        meaning: what the rule finds.
        thresholds: by name, (default, low, meaning) or (default, low, high, meaning).
    """
    parameters = [
        Parameter(name=name, meaning=words, **dict(zip(("default", "low", "high"), numbers, strict=False)))
        for name, (*numbers, words) in thresholds.items()
    ]

    def declare(find: Callable[..., Iterable[Span]]) -> DegenerationRule:
        name = getattr(find, "__name__", "")
        return DegenerationRule(name=name, find=find, thresholds=tuple(parameters), meaning=meaning)

    return declare
