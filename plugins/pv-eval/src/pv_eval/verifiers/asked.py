"""What is asked for, what of it is known, and how far it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pv_data.export.prompt import VerifierPrompt
from pv_eval.verifiers.remembered import Remembered
from pv_eval.verifiers.trace import Trace
from pv_eval.votes import Pair
from pv_judge.answer import Messages

__all__ = ["Asked", "Progress", "Traces", "look_up"]

Traces: TypeAlias = "dict[tuple[str, int], Trace]"
"""By pair id and number of the sample."""


@dataclass(kw_only=True)
class Progress:
    """How far it is; read by whoever shows it."""

    total: int = 0
    done: int = 0
    known: int = 0
    """Of those done: they were there before."""
    failures: Counter[str] = field(default_factory=Counter)
    """Of those done: traces without an end of their own, by the reason."""
    usd: float | None = 0.0
    """None: a model without a price was asked."""
    calls: int = 0
    """Requests that were sent by this command."""
    tokens: int = 0
    stopping: bool = False
    """Nothing more is sent."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One trace that is wanted."""

    pair: Pair
    sample: int
    messages: Messages
    key: str
    """Of the messages, see `Remembered.messages_key`."""


def look_up(
    pairs: Sequence[Pair], prompt: VerifierPrompt, n: int, remembered: Remembered, state: Progress
) -> tuple[Traces, list[Asked]]:
    """The traces that are known, and what has to be asked.

    Sample 0 of all pairs comes first: a run that is stopped early has gone over the whole set.
    """
    state.total = len(pairs) * n
    found: Traces = {}
    wanted: list[Asked] = []
    asked = [(pair, prompt.messages(pair.question, pair.proof)) for pair in pairs]
    keys = [remembered.messages_key(messages) for _, messages in asked]
    for sample in range(n):
        for (pair, messages), key in zip(asked, keys, strict=True):
            known = remembered.get(key, sample)
            if known is None:
                wanted.append(Asked(pair=pair, sample=sample, messages=messages, key=key))
                continue
            found[pair.pair_id, sample] = known
            state.done += 1
            state.known += 1
            if known.missing:
                state.failures[known.missing] += 1
    return found, wanted
