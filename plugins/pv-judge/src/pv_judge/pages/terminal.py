"""Terminal renderer, by rich. Text is passed to rich as text and never as markup, so a name cannot style or hide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pv_judge.pages.blocks import (
    Beside,
    Block,
    Cell,
    Column,
    Curve,
    Excerpt,
    Heading,
    Items,
    Link,
    Paragraph,
    Picture,
    Table,
)
from pv_judge.pages.curve import BLOCKS, PLAIN, sparkline
from pv_judge.pages.text import INTERVAL, visible

__all__ = ["curve_characters", "print_blocks", "print_line", "renderables", "standard_output"]

STYLES = {"": "", "strong": "bold", "dim": "dim", "good": "bold green", "warn": "yellow", "bad": "bold red"}
HEADINGS = {1: "bold", 2: "bold underline", 3: "bold"}
EVIDENCE = "bold black on yellow"
WIDE = 150
"""Columns from which parts of `Beside` are side by side."""
SPARK, LEAST = 48, 4
"""Blocks of a sparkline, at most and at least."""
NAME = 12
"""Characters of a line of a name, at least, where a table is too wide."""


def standard_output(width: int = 120) -> Console:
    """A console as wide as the terminal; where output is no terminal, `width` columns wide, whatever COLUMNS says.

    Python's readline puts COLUMNS into the environment of all processes that are started later.
    """
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)


def print_blocks(blocks: Iterable[Block], console: Console) -> None:
    """Print blocks.

    In a table that is too wide, names are broken into lines and further columns continue in a table below. A number and
    its interval stay on one line, or are on a line each. From 40 columns on nothing is cut.
    """
    for block in blocks:
        if isinstance(block, Table) and not any(column.wrap for column in block.columns):
            console.print()
            for table in _split(block, console):
                width = max(console.width, _width(table))
                console.print(table, crop=False, overflow="ignore", no_wrap=True, width=width)
        else:
            for one in renderables([block], console, console.width):
                console.print(one, soft_wrap=isinstance(one, Text) and not console.is_terminal)


def print_line(console: Console, text: str) -> None:
    """Print one line of plain text, unbroken."""
    console.print(Text(_line(text)), soft_wrap=True)


def renderables(blocks: Iterable[Block], console: Console, width: int) -> Iterator[RenderableType]:
    """Blocks as rich draws them in a region of `width` columns. Pictures are left out."""
    for block in blocks:
        if isinstance(block, Heading):
            before = "\n" if block.level == 2 else ""
            yield Text.assemble(before, (_line(block.text), HEADINGS.get(block.level, "")))
        elif isinstance(block, Paragraph):
            yield Text(visible(block.text), style=STYLES[block.tone])
        elif isinstance(block, Link):
            yield Text(_line(f"{block.text}: {block.href}"))
        elif isinstance(block, Items):
            yield from (Text(f"- {_line(line)}") for line in block.lines)
        elif isinstance(block, Table):
            yield _table(block, range(len(block.columns)), console, width)
        elif isinstance(block, Excerpt):
            yield Text(_line(block.title), style=STYLES[block.tone])
            yield Padding(_excerpt(block, console), (0, 0, 0, 2))
        elif isinstance(block, Beside):
            yield _beside(block, console, width)
        else:
            assert isinstance(block, Picture)


def _beside(block: Beside, console: Console, width: int) -> RenderableType:
    """In two columns of about equal height where the terminal is wide."""
    if width < WIDE or len(block.parts) < 2:
        return Group(*(one for part in block.parts for one in renderables(part, console, width)))
    half = (width - 4) // 2
    parts = [Group(*renderables(part, console, half)) for part in block.parts]
    options = console.options.update(width=half, height=None)
    sizes = [len(console.render_lines(part, options, pad=False)) for part in parts]
    cut = min(range(len(sizes) + 1), key=lambda place: abs(sum(sizes[:place]) - sum(sizes[place:])))
    grid = RichTable.grid(padding=(0, 4, 0, 0))
    grid.add_row(Group(*parts[:cut]), Group(*parts[cut:]))
    return grid


def _excerpt(block: Excerpt, console: Console) -> Text:
    colours = console.color_system is not None and not console.no_color
    text = Text()
    for piece, kind in block.pieces:
        if kind == "mark":
            text.append(visible(piece) if colours else f"[[{visible(piece)}]]", style=EVIDENCE)
        else:
            text.append(visible(piece), style="dim" if kind == "gap" else "")
    return text


def _split(table: Table, console: Console) -> Iterator[RichTable]:
    """As many columns at a time as fit the console; `table.repeated` columns come again in each further table."""
    rest = list(range(len(table.columns)))
    repeated: list[int] = []
    room, stacked = 0, False

    def draw(chosen: Sequence[int]) -> RichTable:
        return _table(table, chosen, console, console.width, room, stacked)

    if _width(draw(rest)) > console.width:
        room = max(NAME, console.width // 3 // max(1, sum(column.left for column in table.columns)))
        shared = range(table.repeated)
        stacked = any(_width(draw([*shared, place])) > console.width for place in rest[table.repeated :])
    while rest:
        fit = 1 if repeated else min(table.repeated + 1, len(rest))
        while fit < len(rest):
            if _width(draw([*repeated, *rest[: fit + 1]])) > console.width:
                break
            fit += 1
        yield draw([*repeated, *rest[:fit]])
        repeated, rest = list(range(table.repeated)), rest[fit:]
        if rest:
            console.print()


def _table(
    table: Table, chosen: Sequence[int], console: Console, width: int, room: int = 0, stacked: bool = False
) -> RichTable:
    """Some columns of a table.

    Args:
        chosen: columns, by number.
        room: characters of a line of a name; 0 for all on one line.
        stacked: whether an interval is below its number.
    """
    columns = [table.columns[place] for place in chosen]
    gap = 1 if any(column.width for column in table.columns) else 2
    drawn = RichTable(
        box=None,
        padding=(0, gap, 0, 0),
        pad_edge=False,
        header_style="bold",
        show_header=any(column.title or column.unit for column in columns),
    )
    units = any(column.unit for column in columns)
    for column in columns:
        drawn.add_column(
            Text(visible(f"{column.title}\n{column.unit}" if units else column.title)),
            justify="left" if column.left else "right",
            no_wrap=not column.left or not (column.wrap or room),
            overflow="fold" if room else "ellipsis",
            width=column.width,
            max_width=room if room and column.left else None,
            style=STYLES[column.tone],
        )
    free = width - sum((column.width or 0) + gap for column in columns)
    for number, row in enumerate(table.rows):
        cells = [_cell(row[place], table.columns[place], console, free, stacked) for place in chosen]
        drawn.add_row(*cells, style=STYLES[table.tones.get(number, "")])
    return drawn


def curve_characters(console: Console) -> str:
    """The characters of `sparkline` that the console's encoding has, low to high."""
    return BLOCKS if console.encoding.lower().startswith("utf") else PLAIN


def _cell(cell: Cell, column: Column[object], console: Console, room: int, stacked: bool) -> Text:
    if isinstance(cell, Curve):
        labelled = room >= LEAST + 26  # else the line of blocks is worth more than its ends
        size = max(LEAST, min(SPARK, room - (20 if labelled else 0)))
        line = sparkline(cell.values, size, curve_characters(console))
        return Text.assemble(
            (line.ljust(size), "cyan"), (f"  {_line(cell.label)}" if labelled else "", "dim")
        )
    line = _line(cell)
    text = Text(INTERVAL.sub("\\1\n\\2", line) if stacked and not column.left else line)
    if column.width is not None:
        text.truncate(column.width, overflow="ellipsis")
    return text


def _line(text: str) -> str:
    """One line: a line break in a name must not look like a further row."""
    return visible(text).replace("\n", " ")


def _width(table: RichTable) -> int:
    """Of the table if nothing is cut."""
    return Console(width=100_000).measure(table).maximum
