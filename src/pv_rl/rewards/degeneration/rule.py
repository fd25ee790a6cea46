"""Declaration and call of a degeneration rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from pv_rl.errors import PluginError
from pv_rl.hookspecs import DegenerationRule, Parameter, Span
from pv_rl.rewards.judge import Anomaly

__all__ = ["MOST_SPANS", "apply", "rule"]

MOST_SPANS = 16
"""Further spans of a rule are left out: one is enough for a veto, and a ledger keeps them all."""


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


def apply(rule: DegenerationRule, text: str) -> list[Anomaly]:
    """The first `MOST_SPANS` things that a rule finds in a text.

    Raises:
        PluginError: the rule failed, or gave something that is not a span of the text.
    """
    given = {one.name: one.default for one in rule.thresholds}
    try:
        spans = list(islice(rule.find(text, **given), MOST_SPANS))
    except Exception as error:
        raise PluginError(f"the degeneration rule {rule.name!r} failed: {error!r}") from error
    return [_anomaly(rule.name, span, len(text)) for span in spans]


def _anomaly(name: str, span: object, length: int) -> Anomaly:
    match span:
        case (int(start), int(end)) if 0 <= start < end <= length:
            return Anomaly(rule=name, start=start, end=end)
    raise PluginError(
        f"the degeneration rule {name!r} gave {span!r}; it gives (start, end) with 0 <= start < end <= {length}, the "
        "length of the text in characters"
    )
