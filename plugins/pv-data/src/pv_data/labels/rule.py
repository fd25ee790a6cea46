"""Voting rule: from votes to a label."""

from __future__ import annotations

from collections.abc import Sequence

from pv_data.run.config import Labels

__all__ = ["decide", "rule_text"]


ROUNDING = 1e-9
"""Of sums of weights."""


def decide(votes: Sequence[bool], weights: Sequence[float], labels: Labels) -> bool | None:
    """The label that votes give, None where they give none.

    `unanimous`: all agree. `majority`: the larger side has at least `needed` votes, by default more than half.
    `weighted`: the larger side has more than half of the weight, and at least the share `needed_share` of it.

    Example: votes T T F with weights 1 1 3 are None, True and False by the three rules.
    """
    if not votes:
        return None
    if labels.rule == "unanimous":
        return votes[0] if len(set(votes)) == 1 else None
    true, total = sum(votes), len(votes)
    if labels.rule == "majority":
        needed = labels.needed if labels.needed is not None else total // 2 + 1
        return True if true >= needed else False if total - true >= needed else None
    share = sum(weight for vote, weight in zip(votes, weights, strict=True) if vote) / sum(weights)
    larger = max(share, 1 - share)
    if larger < labels.needed_share - ROUNDING or larger < 0.5 + ROUNDING:
        return None
    return share > 0.5


def rule_text(total: int, labels: Labels) -> str:
    """The rule as a row names it: `unanimous 5 of 5`, `majority 4 of 5`, `weighted 0.6`."""
    if labels.rule == "unanimous":
        return f"unanimous {total} of {total}"
    if labels.rule == "majority":
        return f"majority {labels.needed if labels.needed is not None else total // 2 + 1} of {total}"
    return f"weighted {labels.needed_share:g}"
