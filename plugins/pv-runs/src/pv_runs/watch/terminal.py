"""A frame as a terminal shows it. Text from a run is put in as text and never as markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pv_runs.watch.frame import Frame, Row, Section, show, show_change
from pv_runs.watch.sparkline import BLOCKS, PLAIN, sparkline
from pv_runs.watch.words import change_note, headline

__all__ = ["Screen"]

STYLES = {"running": "bold green", "ended": "bold cyan", "failed": "bold red", "stopped": "bold yellow"}
WIDE = 150
"""Columns from which sections stand side by side."""
TITLE, UNIT = 23, 19
"""Columns of a row's title and of its unit."""
SPARK = 48
"""Steps that a line of blocks shows at most, each or the mean of neighbours."""
EVIDENCE = "bold black on yellow"
MARKS = ("[[", "]]")
"""Around the evidence where there are no colours."""
FITS = ((3, 4), (3, 2), (2, 2), (2, 1), (1, 1), (1, 0))
"""What is left out where there is no room: rows above a rank, traces beyond a number."""


class Screen:
    """Renders a frame; cut to the terminal's height if `fit`."""

    def __init__(self, frame: Frame, *, fit: bool = False) -> None:
        self.frame, self.fit = frame, fit

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        blocks = BLOCKS if console.encoding.lower().startswith("utf") else PLAIN
        marks = ("", "") if console.color_system and not console.no_color else MARKS
        chosen: RenderableType = Text()
        for rank, traces in FITS if self.fit else FITS[:1]:
            chosen = Group(*self._parts(rank, traces, options.max_width, blocks, marks))
            plain = options.update(height=None)
            if not self.fit or len(console.render_lines(chosen, plain, pad=False)) < console.size.height:
                break
        yield chosen

    def _parts(
        self, rank: int, traces: int, width: int, blocks: str, marks: tuple[str, str]
    ) -> Iterator[RenderableType]:
        frame = self.frame
        head = Text.assemble((frame.name, "bold"), "  ", (frame.state, STYLES.get(frame.state, "bold")))
        yield head.append("  " + "  ".join(headline(frame)))
        if frame.note:
            yield Text(frame.note, style="red" if frame.state == "failed" else "yellow")
        for note in frame.notes:
            yield Text(note, style="yellow")
        for alarm in frame.alarms or ():
            where = "" if alarm.step is None else f"step {alarm.step}  "
            yield Text.assemble(
                ("alarm", "bold red"), f"  {where}", (alarm.sign, "bold"), f"  {alarm.message}"
            )
        if frame.alarms is not None and not frame.alarms:
            yield Text("sentinel: no alarm", style="green")
        sections = [_kept(section, rank) for section in frame.sections]
        yield from self._sections([section for section in sections if section.rows], width, blocks)
        hidden = sum(len(section.rows) for section in frame.sections) - sum(len(one.rows) for one in sections)
        if frame.traces and traces:
            yield Text.assemble("\n", ("last malformed traces", "bold"), (f"  {frame.traces_from}", "dim"))
            for trace in frame.traces[:traces]:
                yield Text.assemble(
                    ("" if trace.step is None else f"step {trace.step}  ", ""), (trace.reason, "red")
                )
                yield Padding(
                    Text.assemble(
                        *(
                            (marks[0] + text + marks[1], EVIDENCE) if hit else text
                            for text, hit in trace.pieces
                        )
                    ),
                    (0, 0, 0, 2),
                )
        if frame.sections:
            more = f" {hidden} more rows: make the terminal taller, or --once." if hidden else ""
            yield Text(f"\n{change_note(frame)}{more}", style="dim")

    def _sections(self, sections: Sequence[Section], width: int, blocks: str) -> Iterator[RenderableType]:
        if width < WIDE:
            yield from (_table(section, width, blocks) for section in sections)
            return
        sizes = [len(section.rows) + 2 for section in sections]
        cut = min(range(len(sizes) + 1), key=lambda place: abs(sum(sizes[:place]) - sum(sizes[place:])))
        grid = Table.grid(padding=(0, 4, 0, 0))
        half = (width - 4) // 2
        grid.add_row(
            Group(*(_table(section, half, blocks) for section in sections[:cut])),
            Group(*(_table(section, half, blocks) for section in sections[cut:])),
        )
        yield grid


def _kept(section: Section, rank: int) -> Section:
    return Section(title=section.title, rows=[row for row in section.rows if row.rank <= rank])


def _table(section: Section, width: int, blocks: str) -> Table:
    table = Table(
        title=Text(section.title, style="bold"),
        title_justify="left",
        box=None,
        show_header=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    room = width - TITLE - UNIT - 8 - 8 - 5
    reach = room >= 30  # else the line of blocks is worth more than its ends
    spark = max(4, min(SPARK, room - (18 if reach else 0)))
    table.add_column(width=TITLE, no_wrap=True)
    table.add_column(width=UNIT, no_wrap=True, style="dim")
    table.add_column(width=8, no_wrap=True, justify="right", style="bold")
    table.add_column(width=8, no_wrap=True, justify="right")
    table.add_column(width=spark, no_wrap=True, style="cyan")
    if reach:
        table.add_column(width=17, no_wrap=True, style="dim")
    for row in section.rows:
        cells = [row.title, row.unit, show(row.last, row.form), show_change(row)]
        cells += [sparkline(row.values, spark, blocks), *([_reach(row)] if reach else [])]
        table.add_row(*(Text(cell, overflow="ellipsis") for cell in cells))
    return table


def _reach(row: Row) -> str:
    finite = [value for value in row.values if value - value == 0]
    return f"{show(min(finite), row.form)} to {show(max(finite), row.form)}" if finite else ""
