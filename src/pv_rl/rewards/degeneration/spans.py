"""Spans of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pv_rl.rewards.degeneration.rule import Span

__all__ = ["merged"]


def merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans in order of their start, those that touch or overlap as one."""
    start, end = 0, -1
    for one, other in spans:
        if end >= one:
            end = max(end, other)
            continue
        if end > start:
            yield start, end
        start, end = one, other
    if end > start:
        yield start, end
