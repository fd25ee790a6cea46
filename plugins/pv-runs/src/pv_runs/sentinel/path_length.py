"""Path length: the sum of the learning rates of a policy's updates, an upper bound on how far it has moved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["PATH_LENGTH", "PathLength"]

PATH_LENGTH = "pv_rl/sentinel/path_length"
"""The key by which a sign finds it among the numbers of a step."""


@dataclass(kw_only=True)
class PathLength:
    """The learning rates of a policy's updates, added up; without a rate in the stream the number of updates.

    Adam moves a weight by about the learning rate in an update, so that a policy that goes straight on goes as far as
    this, through a warm-up and a decay of the rate as well. The rate that a step logs is that of the next step's
    update: verl moves its schedule on before it reads the rate (verl/workers/engine_workers.py).
    """

    step: int = 0
    """The last that was seen; 0 before the first."""
    total: float = 0.0
    """Of the updates before that step's own."""
    own: float = 0.0
    """Rate of that step's own update; 0 if it had none."""
    rate: float | None = None
    """Of the updates after it; None before the first update."""
    by_rate: bool = False
    """Whether the first update had a rate. If not, updates are counted to the end: one unit for the whole run."""
    before: int | None = None
    """Updates before the first step that was seen."""

    def advance(self, step: int, rate: float | None, updated: bool) -> float:
        """The path length at what is measured at `step`: before its own update.

        Args:
            step: the trainer's, after the last one. Steps in between that were not seen had an update each.
            rate: what the step logs; None if it logs none.
            updated: whether the policy was updated in it. A step has no update while the critic alone is trained.
        """
        rate = rate if rate is not None and rate >= 0 else None
        if self.before is None:
            self.before = step - 1
        elif step <= self.step:  # a second line of the same step
            return self.total
        if self.rate is not None:
            if not self.total and rate is not None and rate > self.rate:
                self.own = max(0.0, 2 * self.rate - rate)  # a warm-up: the first rate was less by as much
            self.total += self.own + self.rate * (step - self.step - 1)
            self.own = self.rate if updated else 0.0
            self.rate = rate if self.by_rate and rate is not None else self.rate
        elif updated:
            self.by_rate = rate is not None
            self.rate = self.own = 1.0 if rate is None else rate
            self.total = self.own * self.before
        self.step = step
        return self.total

    def went_back(self, to: int, now: int) -> None:
        """The policy is that of the end of step `to` again, and `now` is the last step that counts as seen."""
        if self.rate is None:
            self.before = to
        else:
            self.total += self.own + self.rate * (to - self.step)
            self.own = 0.0
        self.step = now

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> PathLength:
        """From `vars()` of one, or a `TypeError`."""
        path = cls(**saved)
        numbers = [
            path.step,
            path.total,
            path.own,
            *(one for one in (path.rate, path.before) if one is not None),
        ]
        if not isinstance(path.by_rate, bool) or not all(math.isfinite(one) and one >= 0 for one in numbers):
            raise TypeError(f"{dict(saved)} is no path length")
        return path
