"""Screen and page of a run: a frame as blocks, fitted to a terminal, and as HTML that updates itself."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from pv_judge.pages.blocks import Beside, Block, Column, Curve, Excerpt, Heading, Paragraph, Table, Tone
from pv_judge.pages.html import to_html
from pv_judge.pages.terminal import renderables
from pv_judge.pages.text import duration, number
from pv_runs.watch.frame import Frame, Row, show, show_change

__all__ = ["Screen", "new_lines", "to_page"]

TONES: dict[str, Tone] = {"running": "good", "ended": "strong", "failed": "bad"}
FITS = ((3, 4), (3, 2), (2, 2), (2, 1), (1, 1), (1, 0))
"""What a small terminal leaves out: rows above a rank, traces beyond a number."""
SAID = {
    "reward": "reward",
    "held out, right proofs": "held-out right",
    "held out, wrong proofs": "held-out wrong",
    "training, right proofs": "right",
    "training, wrong proofs": "wrong",
    "response length": "length",
    "no verdict": "no verdict",
    "vetoed": "vetoed",
    "abstained": "abstained",
    "time": "seconds",
}
"""What a line of `new_lines` shows, by the row's title."""


class Screen:
    """Renders a frame for rich; with `fit` no higher than the terminal."""

    def __init__(self, frame: Frame, *, fit: bool = False) -> None:
        self.frame, self.fit = frame, fit

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        chosen: RenderableType = Text()
        for rank, traces in FITS if self.fit else FITS[:1]:
            title = f"{self.frame.name}  {self.frame.state}  {'  '.join(_headline(self.frame))}"
            head = Paragraph(title, TONES.get(self.frame.state, "warn"))
            blocks = [head, *_blocks(self.frame, rank, traces)]
            chosen = Group(*renderables(blocks, console, options.max_width))
            plain = options.update(height=None)
            if not self.fit or len(console.render_lines(chosen, plain, pad=False)) < console.size.height:
                break
        yield chosen


def to_page(frame: Frame, *, refresh: float | None) -> str:
    """The HTML page.

    Args:
        frame: what it shows.
        refresh: seconds after which a browser updates it; None for a page that stays as it is.
    """
    stamp = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(frame.now))
    kept = f"updated every {refresh:.0f} s" if refresh else "not kept up to date"
    head = _headline(frame)
    blocks = [
        Heading(f"{frame.name}: {frame.state}", level=1),
        Paragraph(", ".join(head), TONES.get(frame.state, "warn")),
        *_blocks(frame, *FITS[0]),
        *_legend(frame),
        Paragraph(f"As of {stamp}, {kept}.", "dim"),
    ]
    return to_html(blocks, title=f"{'! ' if frame.alarms else ''}{head[0]} - {frame.name}", refresh=refresh)


def _legend(frame: Frame) -> Iterator[Block]:
    kinds = {
        "an alarm (red line)": frame.alarmed,
        "a resume (dashed line)": frame.resumed,
        "a validation (tick below)": frame.validated,
    }
    if frame.sections:
        marked = ", ".join(name for name, steps in kinds.items() if steps)
        steps = f"Graphs show steps 0 to {frame.step}, between the values beside them."
        yield Paragraph(steps + (f" Marked: {marked}." if marked else ""), "dim")


def new_lines(frame: Frame, after: int) -> Iterator[tuple[int, str]]:
    """For output that is no terminal: the steps after `after`, each with a line of numbers."""
    rows = [row for section in frame.sections for row in section.rows if row.title in SAID and row.rank < 3]
    by_step: dict[int, list[str]] = {}
    for row in rows:
        for step, value in zip(row.steps, row.values, strict=True):
            if step > after:
                by_step.setdefault(step, []).append(f"{SAID[row.title]} {show(value, row.form)}")
    for step in sorted(by_step):
        yield step, "  ".join([f"step {step}{_of(frame)}", *by_step[step]])


def _blocks(frame: Frame, rank: int, traces: int) -> Iterator[Block]:
    if frame.note:
        yield Paragraph(frame.note, "bad" if frame.state == "failed" else "warn")
    for note in frame.notes:
        yield Paragraph(note, "warn")
    for alarm in frame.alarms or ():
        where = "" if alarm.step is None else f"step {alarm.step}  "
        yield Paragraph(f"alarm  {where}{alarm.sign}  {alarm.message}", "bad")
    if frame.alarms is not None and not frame.alarms:
        yield Paragraph("sentinel: no alarm", "good")
    shown = [(one.title, [row for row in one.rows if row.rank <= rank]) for one in frame.sections]
    yield Beside([_section(frame, title, rows) for title, rows in shown if rows])
    if frame.traces and traces:
        yield Heading(f"last malformed traces: {frame.traces_from}")
        for trace in frame.traces[:traces]:
            where = "" if trace.step is None else f"step {trace.step}  "
            yield Excerpt(f"{where}{trace.reason}", trace.pieces, "bad")
    if frame.sections:
        hidden = sum(len(one.rows) for one in frame.sections) - sum(len(rows) for _, rows in shown)
        more = f" {hidden} more rows: make the terminal taller, or use --once." if hidden else ""
        yield Paragraph(
            f"Change: over the last {frame.over} steps, or over all if there are fewer; of a share, in points. "
            f"A line runs from its smallest to its largest value.{more}",
            "dim",
        )


def _section(frame: Frame, title: str, rows: list[Row]) -> list[Block]:
    columns: list[Column[Row]] = [
        Column("", lambda row: row.title, left=True, width=23),
        Column("", lambda row: row.unit, left=True, width=19, tone="dim"),
        Column("", lambda row: show(row.last, row.form), width=9, tone="strong"),
        Column("", show_change, width=9),
        Column("", lambda row: _curve(frame, row), left=True),
    ]
    return [Heading(title, level=3), Table.of(columns, rows)]


def _curve(frame: Frame, row: Row) -> Curve:
    finite = [value for value in row.values if math.isfinite(value)]
    low, high = (show(min(finite), row.form), show(max(finite), row.form)) if finite else ("", "")
    marks = {"validation": frame.validated, "resume": frame.resumed, "alarm": frame.alarmed}
    label = f"{low} to {high}" if finite else ""
    return Curve(row.steps, row.values, label, frame.step or 0, scale=(low, high), marks=marks)


def _headline(frame: Frame) -> list[str]:
    """How far, how fast, how long: what is known of these."""
    parts = [("no step yet" if frame.step is None else f"step {frame.step}") + _of(frame)]
    if frame.seconds is not None:
        parts.append(f"{number(frame.seconds)} s a step")
    if frame.left is not None:
        parts.append(f"about {duration(frame.left)} left")
    if frame.wrote is not None:
        parts.append(f"last wrote {duration(frame.now - frame.wrote)} ago")
    if frame.usd:
        parts.append(f"judge ${number(frame.usd)}")
    return parts


def _of(frame: Frame) -> str:
    return f" of {frame.total}" if frame.total else ""
