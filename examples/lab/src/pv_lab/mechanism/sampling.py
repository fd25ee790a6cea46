"""Sampling of proofs and of the verifier's responses to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pv_lab.mechanism.policy import BEHAVIOURS, CHANCES, Counts, Probabilities

__all__ = ["TOKENS", "Proofs", "Responses", "respond"]

SHORT, CHECK, RECHECK = range(len(BEHAVIOURS))
MISS, FALSE_ALARM, AGAIN, LOST, KEPT = range(len(CHANCES))

TOKENS = {"short": 8, "opening": 5, "look": 8, "second_look": 10, "reject": 11, "accept": 7, "restart": 8}
"""Tokens of each part of a response, near those of the lab's traces."""


@dataclass(frozen=True, kw_only=True)
class Proofs:
    """N proofs, of one wrong step at most."""

    steps: NDArray[np.int64]
    """(N,) number of steps."""
    wrong: NDArray[np.int64]
    """(N,) the wrong step, counted from 0; -1 in a proof that is right."""


@dataclass(frozen=True, kw_only=True)
class Responses:
    """N responses."""

    counts: Counts
    length: NDArray[np.int64]
    """(N,) tokens, at most the run's limit."""
    accepts: NDArray[np.bool_]
    """(N,) verdict True."""
    cut: NDArray[np.bool_]
    """(N,) reached the limit: no verdict, whatever `accepts` says."""

    def correct(self, proofs: Proofs) -> NDArray[np.bool_]:
        """(N,) the verdict is there and right."""
        return (self.accepts == (proofs.wrong < 0)) & ~self.cut


def respond(
    rng: np.random.Generator,
    proofs: Proofs,
    policy: Probabilities,
    run: NDArray[np.int64],
    max_length: NDArray[np.int64],
) -> Responses:
    """One response a proof.

    Args:
        rng: moved on.
        proofs: N of them.
        policy: of R runs.
        run: (N,) the run of each proof.
        max_length: (N,) tokens allowed.
    """
    number = len(run)
    behaviour = (rng.random((number, 1)) > policy.behaviour.cumsum(axis=1)[run, :2]).sum(axis=1)
    asked, yes = np.zeros((2, len(CHANCES), number), dtype=np.int64)
    length = np.where(behaviour == SHORT, TOKENS["short"], TOKENS["opening"])
    accepts, at = np.ones(number, dtype=bool), np.zeros(number, dtype=np.int64)

    chances = policy.chance.T[:, run]

    def decide(chance: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        out = rng.random(len(rows)) < chances[chance][rows]
        asked[chance][rows] += 1
        yes[chance][rows] += out
        return out

    open_rows = np.flatnonzero(behaviour != SHORT)
    while len(open_rows):  # one look of every response that has not ended
        length[open_rows] += TOKENS["look"]
        wrong = at[open_rows] == proofs.wrong[open_rows]
        on_wrong, on_right = open_rows[wrong], open_rows[~wrong]
        seen = on_wrong[~decide(MISS, on_wrong)]
        false = on_right[decide(FALSE_ALARM, on_right)]
        again_seen, again_false = seen[behaviour[seen] == RECHECK], false[behaviour[false] == RECHECK]
        length[again_seen] += TOKENS["second_look"]
        length[again_false] += TOKENS["second_look"]
        dropped = [again_seen[decide(LOST, again_seen)], again_false[~decide(KEPT, again_false)]]
        accepts[seen] = accepts[false] = False
        accepts[np.concatenate(dropped)] = True
        rejected = open_rows[~accepts[open_rows]]
        length[rejected] += TOKENS["reject"]

        at[open_rows] += 1
        passed = open_rows[accepts[open_rows] & (at[open_rows] == proofs.steps[open_rows])]
        twice = passed[behaviour[passed] == RECHECK]
        restart = twice[decide(AGAIN, twice)]
        length[restart] += TOKENS["restart"]
        at[restart] = 0
        ended = ~accepts
        ended[passed] = True
        ended[restart] = False
        length[passed[ended[passed]]] += TOKENS["accept"]
        open_rows = open_rows[~ended[open_rows] & (length[open_rows] < max_length[open_rows])]

    return Responses(
        counts=Counts(behaviour=behaviour, asked=asked, yes=yes),
        length=np.minimum(length, max_length),
        accepts=accepts,
        cut=length >= max_length,
    )
