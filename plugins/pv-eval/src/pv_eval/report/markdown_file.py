"""The report as Markdown, with tables as GitHub has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pv_eval.report.blocks import (
    Block,
    Chart,
    Excerpts,
    Grid,
    Heading,
    Items,
    Paragraph,
    Subheading,
    Text,
)
from pv_judge.pages.text import markdown, plain

__all__ = ["to_markdown"]

BACKTICKS = re.compile(r"`+")
LONGEST = 2000
"""Characters of a line of ours."""


def to_markdown(blocks: Iterable[Block]) -> str:
    """Text that shows `NAME.png` beside it for each chart. Whatever comes from outside is escaped or fenced."""
    return "\n".join(line for number, block in enumerate(blocks) for line in _lines(block, number == 0))


def _lines(block: Block, first: bool) -> Iterator[str]:
    if isinstance(block, Heading | Subheading):
        yield f"{'###' if isinstance(block, Subheading) else '#' if first else '##'} {_safe(block.text)}"
    elif isinstance(block, Paragraph):
        yield _safe(block.text)
    elif isinstance(block, Items):
        yield from (f"- {_safe(line)}" for line in block.lines)
    elif isinstance(block, Chart):
        yield f"![{_safe(block.name)}]({block.name}.png)"
        yield ""
        yield _safe(block.caption)
    elif isinstance(block, Text):
        yield from _fenced(block)
    elif isinstance(block, Excerpts):
        for column in block.columns:
            yield from _fenced(column)
            yield ""
    else:
        yield from _table(block)
    yield ""


def _fenced(block: Text) -> Iterator[str]:
    """In a fence that is longer than any inside; the passage stands between angle quotes."""
    marks = {"text": "{}", "mark": "«{}»", "gap": "\n{}\n"}
    inside = "".join(marks[piece.kind].format(piece.text) for piece in block.pieces)
    fence = "`" * max(3, 1 + max((len(run) for run in BACKTICKS.findall(inside)), default=0))
    yield _safe(block.title)
    yield ""
    yield f"{fence}text"
    yield inside
    yield fence


def _table(grid: Grid) -> Iterator[str]:
    heads = [f"{title}, {unit}" if unit else title for title, unit in grid.heads]
    rule = ["---" if column < grid.leading else "---:" for column in range(len(heads))]
    for cells in (map(_safe, heads), rule, *(map(_safe, line) for line in grid.lines)):
        yield f"| {' | '.join(cells)} |"


def _safe(text: str) -> str:
    return markdown(plain(text, LONGEST))
