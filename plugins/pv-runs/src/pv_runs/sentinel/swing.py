"""Swing: how far a value has moved in its bad direction, and the largest such move that was undone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Swing"]

CAME_BACK = 0.5
"""Part of a move that has to be undone before a later move may go as far."""


@dataclass(kw_only=True)
class Swing:
    """Turning points of a smoothed value; larger is worse.

    Prompts that get harder and easier in turn move accuracy, lengths and entropy up and down. A move that was undone
    did no harm, so a later one may go as far.

    Example: 1, 2, 3, 5, 4, 2, 3. At the 2 more than half of the move from 1 to 5 is undone, so `largest` is 4.
    """

    low: float | None = None
    """Lowest value since the last turn; None before the first value."""
    top: float = 0.0
    """Highest value since `low`."""
    largest: float = 0.0
    """Largest move that was undone."""
    alarmed: float | None = None
    """Value at the last alarm since the last turn."""

    def observe(self, value: float, least: float, drift: float) -> None:
        """Take in the next value.

        Args:
            value: smoothed.
            least: smaller moves are noise.
            drift: a rise by this much a step is healthy, and `low` follows it.
        """
        if self.low is not None and drift:
            self.low = min(value, self.low + drift)
        if self.low is None:
            self._begin(value)
            return
        self.top = max(self.top, value)
        move = self.top - self.low
        undone = self.top - value >= CAME_BACK * move
        if undone and move >= least:
            self.largest = max(self.largest, move)
        if value <= self.low or (undone and move >= least):
            self._begin(value)

    def allows(self, slack: float, most: float) -> float | None:
        """The largest value that is no reason for an alarm; None before the first value.

        Args:
            slack: a move that is too small to matter.
            most: a move larger than this is never allowed, even if one was undone.
        """
        if self.low is None:
            return None
        allowed = self.low + max(slack, min(self.largest, most))
        return allowed if self.alarmed is None else max(allowed, self.alarmed + slack)

    def _begin(self, value: float) -> None:
        self.low, self.top, self.alarmed = value, value, None
