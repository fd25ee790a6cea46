"""What a view says in words, the same in a terminal and in a page."""

from __future__ import annotations

from pv_judge.pages.text import number
from pv_runs.watch.frame import Frame

__all__ = ["change_note", "duration", "headline"]


def duration(seconds: float) -> str:
    """`12 s`, `5 min`, `3.4 h`, `2.1 days`."""
    for size, unit, digits in ((86400, "days", 1), (3600, "h", 1), (60, "min", 0)):
        if seconds >= size * (1.5 if unit == "min" else 1):
            return f"{seconds / size:.{digits}f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def headline(frame: Frame) -> list[str]:
    """How far, how fast, how long: what is known of these."""
    parts = []
    if frame.step is None:
        parts.append("no step yet" + (f" of {frame.total}" if frame.total else ""))
    else:
        parts.append(f"step {frame.step}" + (f" of {frame.total}" if frame.total else ""))
    if frame.seconds is not None:
        parts.append(f"{number(frame.seconds)} s a step")
    if frame.left is not None:
        parts.append(f"about {duration(frame.left)} left")
    if frame.wrote is not None:
        parts.append(f"last wrote {duration(frame.now - frame.wrote)} ago")
    if frame.usd:
        parts.append(f"judge ${number(frame.usd)}")
    return parts


def change_note(frame: Frame) -> str:
    """What the columns are."""
    return (
        f"change: over the last {frame.over} steps, or all that are there; of a share in points. "
        "A line runs from its least to its greatest value."
    )
