"""One sampled trace, or why there is none, and the vote that it casts."""

from __future__ import annotations

from dataclasses import dataclass

from pv_eval.scorer import read_vote
from pv_eval.votes import Pair, Vote

__all__ = ["Trace", "to_vote"]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """See the module."""

    text: str | None
    """None: the request failed for good."""
    tokens: int | None = None
    """Of the answer, as the server counts them; None: it does not."""
    missing: str = ""
    """Why there is no verdict, where that is known without reading: `truncated`, `refusal`, `timeout`, ..."""
    verdict: bool | None = None
    """Given with the trace, by a file that has verdicts and no texts."""
    logit: float | None = None
    """Of the verdict: log of the odds of True over False, where a file has it."""
    known: bool = False
    """It was there before: nothing was asked for it."""


def to_vote(pair: Pair, sample: int, trace: Trace, *, unit: str, keep_trace: bool = True) -> Vote:
    """The vote. A trace that was cut, refused or never came has no verdict, which is none of `False`.

    Args:
        unit: of lengths, `tokens` or `characters`.
        keep_trace: whether the vote has the text.
    """
    names = {"pair_id": pair.pair_id, "question_id": pair.question_id, "sample": sample}
    length = trace.tokens if unit == "tokens" else None if trace.text is None else len(trace.text)
    if trace.text is None or trace.missing:
        text = trace.text if keep_trace else None
        verdict = None if trace.missing else trace.verdict
        return Vote(**names, verdict=verdict, length=length, trace=text, logit=trace.logit)
    vote = read_vote(**names, trace=trace.text, keep_trace=keep_trace)
    # `read_vote` counts characters where it gets no length
    return Vote(**names, verdict=vote.verdict, length=length, trace=vote.trace, logit=trace.logit)
