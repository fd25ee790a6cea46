"""What a verifier thinks of a candidate: the score M that best-of-k chooses by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pv_eval.counts import Floats, VoteCounts
from pv_rl.errors import ConfigError, DataError

__all__ = ["SCORES", "scores_of"]

SCORES = ("votes", "logit")


def scores_of(counts: VoteCounts, by: str | Mapping[str, float] = "votes") -> tuple[Floats, int]:
    """A score a pair, and how many pairs have none and so come last.

    Args:
        counts: of P pairs.
        by: `votes`, the share of all n votes that accept (a missing verdict does not); `logit`, the mean of
            log p(True) - log p(False) over the votes that have one, -inf without any; or scores of your own by pair_id.

    Returns:
        (P,) scores, higher is better.

    Raises:
        ConfigError: there is no such score.
        DataError: no vote has a logit, or a score of your own is missing or NaN.
    """
    if not isinstance(by, str):
        lacking = [pair.pair_id for pair in counts.pairs if pair.pair_id not in by]
        if lacking:
            raise DataError(
                f"{len(lacking)} pairs have no score, {lacking[0][:80]!r} the first; give -inf for none"
            )
        own = np.array([float(by[pair.pair_id]) for pair in counts.pairs])
        if np.isnan(own).any():
            raise DataError(f"{int(np.isnan(own).sum())} scores are NaN; give -inf for none")
        return own, int(np.isneginf(own).sum())
    if by == "votes":
        return counts.accepted / counts.samples, 0
    if by != "logit":
        raise ConfigError(f"score {by!r}; scores are {', '.join(SCORES)}, or numbers by pair_id")
    number = len(counts.pairs)
    known = np.array([vote.logit is not None for vote in counts.votes], dtype=bool)
    if not known.any():
        raise DataError("no vote has a logit of its verdict; sample with logprobs, or score by votes")
    values = np.array([vote.logit or 0.0 for vote in counts.votes])
    sums = np.bincount(counts.pair_of_vote, weights=values, minlength=number)
    times = np.bincount(counts.pair_of_vote, weights=known.astype(float), minlength=number)
    scores = np.where(times > 0, sums / np.maximum(times, 1), -np.inf)
    return scores, int((times == 0).sum())
