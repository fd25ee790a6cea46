"""What a sentinel says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Alarm"]


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A sign that has moved in a way in which no healthy run moves, but for the stated rate of false alarms."""

    sign: str
    step: int
    value: float | None
    """At this step, in the sign's own unit; None if it is no finite number."""
    expected: float | None
    """The level before the move; of an alarm by limit, the limit that was passed; None before the first value."""
    band: tuple[float | None, float | None]
    """Where a single step's value was to be expected, three standard deviations around the level before the move;
    None where there is no bound."""
    kind: Literal["cusum", "limit", "not_finite"]
    """Which statistic: a sum of deviations, a limit from the config, or none: a NaN or an infinity."""
    statistic: float | None
    """The CUSUM in standard deviations; of an alarm by limit, the value."""
    threshold: float | None
    """What the statistic has passed."""
    since: int
    """The step at which the move began, as estimated."""
    sentence: str
    """All of it for a person, with what to look at."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON; the band is a list there."""
        return asdict(self) | {"band": list(self.band)}
