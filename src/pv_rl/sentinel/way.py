"""How far a policy can have gone from its start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["WAY", "Way"]

WAY = "pv_rl/sentinel/way"
"""The key by which a sign finds it among the numbers of a step."""


@dataclass(kw_only=True)
class Way:
    """The learning rates of the steps before, added up; without a rate in the stream the number of steps.

    Adam moves a weight by about the learning rate in an update, so that a policy that goes straight on goes as far as
    this, through a warm-up and a decay of the rate as well.
    """

    total: float = 0.0
    rate: float | None = None
    """Of the last step; None before the first."""
    by_rate: bool = False
    """Whether the first step had a rate. If not, steps are counted to the end: one unit for the whole run."""

    def go(self, step: int, last: int | None, rate: float | None) -> float:
        """The way to what is measured at `step`: before its own update.

        Steps since `last` that were not seen count by the last rate, those before the first one by its rate.
        """
        rate = rate if rate is not None and rate >= 0 else None
        if self.rate is None:
            self.by_rate = rate is not None
            self.rate = 1.0 if rate is None else rate
            self.total = self.rate * (step - 1)
        else:
            self.total += self.rate * (step - (last or 0))
            if self.by_rate and rate is not None:
                self.rate = rate
        return self.total

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Way:
        """From `vars()` of one, or a `TypeError`."""
        way = cls(**saved)
        numbers = [way.total, *([] if way.rate is None else [way.rate])]
        if not isinstance(way.by_rate, bool) or not all(math.isfinite(one) and one >= 0 for one in numbers):
            raise TypeError(f"{dict(saved)} is no way")
        return way
