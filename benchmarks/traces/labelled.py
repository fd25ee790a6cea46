"""The labelled set of the rule gate: traces left fluent, and others spoiled; one half to choose thresholds on, one
half to report."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, product

from traces.corrupt import KINDS, STRENGTHS, corrupt
from traces.real import Trace

__all__ = ["HALVES", "Labelled", "labelled_set"]

HALVES = ("tune", "report")


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A trace of the labelled set."""

    trace: Trace
    text: str
    """The trace's own text, or what was made of it."""
    kind: str = "fluent"
    """`fluent`, or the corruption."""
    strength: str = ""


def labelled_set(
    traces: Sequence[Trace], half: str, degenerate: frozenset[str] = frozenset()
) -> list[Labelled]:
    """The same for the same traces. No text is in both halves, nor both fluent and spoiled.

    Args:
        traces: as `real_traces` gives them.
        half: `tune` or `report`.
        degenerate: names of traces that are malformed as they are; none of them is spoiled.
    """
    number = HALVES.index(half)
    mine = [trace for trace in traces if _part(trace) // 2 == number]
    fluent = [trace for trace in mine if _part(trace) % 2 == 0]
    to_spoil = [trace for trace in mine if _part(trace) % 2 == 1 and trace.name not in degenerate]
    others = [trace.text for trace in to_spoil]
    spoiled = [
        Labelled(
            trace=trace,
            text=corrupt(trace.text, others, kind=kind, strength=strength, half=number, seed=trace.name),
            kind=kind,
            strength=strength,
        )
        for trace, (strength, kind) in zip(to_spoil, cycle(product(STRENGTHS, KINDS)), strict=False)
    ]
    return [Labelled(trace=trace, text=trace.text) for trace in fluent] + spoiled


def _part(trace: Trace) -> int:
    """One of four parts, by the problem where a source has several texts on one."""
    problem = ":".join(trace.name.split(":")[:2]) if trace.source in ("gsm8k", "prmbench") else trace.name
    return _hash(problem) % 4


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
