"""Frame: everything that `pv-rl watch` shows of a run at one moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pv_judge.pages.blocks import Piece
from pv_judge.pages.text import number

__all__ = ["Alarm", "Form", "Frame", "Row", "Section", "Trace", "show", "show_change"]

Form = Literal["share", "number", "count"]
"""How a value is written: 0.0156 as `1.6%`, 76.77 as `76.8`, 3.0 as `3`."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number over the steps."""

    title: str
    unit: str
    form: Form
    rank: int
    """1 is shown on the smallest screen, 3 only where there is room."""
    steps: Sequence[int]
    """(S,), growing."""
    values: Sequence[float]
    """(S,), NaN where the run logged what is no finite number."""
    change: float | None
    """The last value less the one `Frame.over` steps before, or less the first; None without two."""

    @property
    def last(self) -> float:
        return self.values[-1]


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A malformed trace, cut down to the place that shows it."""

    step: int | None
    reason: str
    """The rules that hit, or what the judge wrote."""
    pieces: Sequence[Piece]
    """The text, with the evidence marked."""


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """What a sentinel wrote."""

    sign: str
    step: int | None
    message: str


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A moment of a run."""

    name: str
    state: str
    """running, ended, failed, stopped, unknown, or metrics file."""
    note: str
    """What to know of the state: an error, or that nothing has been written for long. May be empty."""
    step: int | None
    total: int | None
    seconds: float | None
    """A step's, by the wall clock."""
    left: float | None
    """Seconds to the last step."""
    wrote: float | None
    """When the run last wrote, seconds since the epoch."""
    now: float
    usd: float | None
    """What the judge has cost so far."""
    over: int
    """Steps of `Row.change`."""
    sections: Sequence[Section]
    traces: Sequence[Trace]
    traces_from: str
    """Where the traces are from, and what they are."""
    alarms: Sequence[Alarm] | None
    """The last ones, the latest first; None without a sentinel."""
    notes: Sequence[str]
    """What could not be read."""
    alarmed: Sequence[int] = ()
    """Steps of alarms."""
    resumed: Sequence[int] = ()
    """First steps after a resume."""
    validated: Sequence[int] = ()
    """Steps of validations."""

    @property
    def over_for_good(self) -> bool:
        """Whether nothing more will come, but for a resume."""
        return self.state in ("ended", "failed", "stopped")


def show(value: float, form: Form) -> str:
    """A value for people; a dash where it is no number."""
    if not math.isfinite(value):
        return "-"
    if form == "share":
        return f"{100 * value:.1f}%"
    return f"{value:.0f}" if form == "count" else number(value)


def show_change(row: Row) -> str:
    """With its sign; of a share in points."""
    if row.change is None or not math.isfinite(row.change):
        return ""
    if row.form == "share":
        return f"{100 * row.change:+.1f}"
    sign = "-" if row.change < 0 else "+"
    text = f"{abs(row.change):.0f}" if row.form == "count" else number(abs(row.change), row.last)
    return sign + text
