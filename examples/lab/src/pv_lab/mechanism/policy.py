"""Policy: eight logits that set the verifier's behaviour and how reliable its checks are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pv_lab.mechanism.settings import Setting

__all__ = ["BEHAVIOURS", "CHANCES", "Counts", "Probabilities", "first_logits", "probabilities", "score"]

BEHAVIOURS = ("short", "check", "recheck")
"""Accept at once; look at each step once; look twice at what seems wrong, and perhaps start over."""
CHANCES = ("miss", "false_alarm", "again", "lost", "kept")
"""Decisions within a check, see `Setting`: five logits, after the three of `BEHAVIOURS`."""


@dataclass(frozen=True, kw_only=True)
class Probabilities:
    """What the logits of R runs mean."""

    behaviour: NDArray[np.float64]
    """(R, 3) shares of `BEHAVIOURS`, softmax of the first three logits."""
    chance: NDArray[np.float64]
    """(R, 5) probabilities of `CHANCES`, sigmoid of the others."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The decisions that N responses took; all that the probability of a response depends on."""

    behaviour: NDArray[np.int64]
    """(N,) index into `BEHAVIOURS`."""
    asked: NDArray[np.int64]
    """(5, N) how often each of `CHANCES` was to be decided."""
    yes: NDArray[np.int64]
    """(5, N) how often it came out."""


def first_logits(settings: Sequence[Setting]) -> NDArray[np.float64]:
    """(R, 8) logits before training, one row a run."""
    shares = np.array([[s.short, 1 - s.short - s.recheck, s.recheck] for s in settings])
    chances = np.array([[getattr(s, name) for name in CHANCES] for s in settings])
    return np.hstack([np.log(shares), np.log(chances) - np.log1p(-chances)])


def probabilities(logits: NDArray[np.float64]) -> Probabilities:
    """From (R, 8) logits."""
    odds = np.exp(logits[:, :3] - logits[:, :3].max(axis=1, keepdims=True))
    return Probabilities(
        behaviour=odds / odds.sum(axis=1, keepdims=True), chance=np.exp(-np.logaddexp(0, -logits[:, 3:]))
    )


def score(counts: Counts, policy: Probabilities, run: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N, 8) gradient of each response's log probability with respect to the logits of its run.

        d log pi / d z_b = [b was chosen] - pi_b             for the three behaviours
        d log pi / d z_c = yes_c - asked_c * p_c             for the five chances

    Args:
        counts: of N responses.
        policy: of R runs.
        run: (N,) the run of each response.
    """
    chosen = np.eye(len(BEHAVIOURS))[counts.behaviour]
    return np.hstack([chosen - policy.behaviour[run], counts.yes.T - counts.asked.T * policy.chance[run]])
