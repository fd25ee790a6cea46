"""The verdict scorer as a plain function, for other harnesses."""

from __future__ import annotations

from pv_eval.votes import Vote
from pv_rl.errors import DataError
from pv_rl.verdict import parse_verdict

__all__ = ["read_vote", "score_verdict"]


def score_verdict(trace: str, label: bool) -> dict[str, float]:
    """Metrics of one trace, as numbers that a harness can average.

    Keys: `acc`, 1 where the verdict is the label (a missing verdict is wrong); `accepted`, 1 where the trace ends in
    `### True`; `missing`, 1 where it ends in no verdict. The reading is `pv_rl.verdict.parse_verdict`.

    Example: `score_verdict("Step 2 is wrong.\\n### False", False)` is `{"acc": 1.0, "accepted": 0.0, "missing": 0.0}`.

    Raises:
        DataError: the trace is no text or the label no bool; a label of words is the adapter's to read.
    """
    if not isinstance(trace, str) or not isinstance(label, bool):
        raise DataError(
            f"score_verdict takes a text and True or False; given {type(trace).__name__} and {label!r:.80}"
        )
    verdict = parse_verdict(trace)
    return {
        "acc": float(verdict is label),
        "accepted": float(verdict is True),
        "missing": float(verdict is None),
    }


def read_vote(
    *,
    pair_id: str,
    question_id: str,
    sample: int,
    trace: str,
    length: float | None = None,
    logit: float | None = None,
    keep_trace: bool = True,
) -> Vote:
    """The vote that a trace casts.

    Args:
        pair_id: see `Vote`, as are the others.
        length: in the run's unit; without it, characters.
        keep_trace: whether the vote carries the text on.
    """
    return Vote(
        pair_id=pair_id,
        question_id=question_id,
        sample=sample,
        verdict=parse_verdict(trace),
        length=len(trace) if length is None else length,
        trace=trace if keep_trace else None,
        logit=logit,
    )
