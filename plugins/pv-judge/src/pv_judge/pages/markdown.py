"""Markdown renderer, with tables as GitHub has them. All text is escaped or fenced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pv_judge.pages.blocks import (
    Beside,
    Block,
    Cell,
    Excerpt,
    Heading,
    Items,
    Link,
    Paragraph,
    Picture,
    Table,
)
from pv_judge.pages.text import markdown, visible

__all__ = ["to_markdown"]

MARKS = {"text": "{}", "mark": "«{}»", "gap": "\n{}\n"}
STRONG = ("strong", "bad")


def to_markdown(blocks: Iterable[Block]) -> str:
    """Markdown that shows `NAME.png`, a file beside it, for each picture."""
    return "\n".join(line for block in blocks for line in _lines(block))


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"{'#' * block.level} {_safe(block.text)}"
    elif isinstance(block, Paragraph):
        yield _strong(_safe(block.text), block.tone)
    elif isinstance(block, Link):
        yield f"[{_safe(block.text)}]({block.href})"
    elif isinstance(block, Items):
        yield from (f"- {_safe(line)}" for line in block.lines)
    elif isinstance(block, Picture):
        yield f"![{_safe(block.name)}]({block.name}.png)"
        yield ""
        yield _safe(block.caption)
    elif isinstance(block, Excerpt):
        yield from _fenced(block)
    elif isinstance(block, Beside):
        for part in block.parts:
            for inner in part:
                yield from _lines(inner)
        return
    else:
        yield from _table(block)
    yield ""


def _fenced(block: Excerpt) -> Iterator[str]:
    """In a fence that is longer than any inside; the marked part is between angle quotes."""
    inside = "".join(MARKS[kind].format(visible(text)) for text, kind in block.pieces)
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", inside)), default=0))
    yield from (_safe(block.title), "", f"{fence}text", inside, fence)


def _table(table: Table) -> Iterator[str]:
    heads = [f"{one.title}, {one.unit}" if one.unit else one.title for one in table.columns]
    yield _row(map(_safe, heads))
    yield _row("---" if one.left else "---:" for one in table.columns)
    for number, row in enumerate(table.rows):
        yield _row(_strong(_cell(cell), table.tones.get(number, "")) for cell in row)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    return _safe(cell if isinstance(cell, str) else cell.label)


def _strong(text: str, tone: str) -> str:
    return f"**{text}**" if tone in STRONG and text.strip() else text


def _safe(text: str) -> str:
    return markdown(" ".join(visible(text).split()))
