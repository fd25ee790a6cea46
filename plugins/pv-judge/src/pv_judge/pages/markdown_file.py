"""The report as Markdown, with tables as GitHub has them."""

from __future__ import annotations

from collections.abc import Iterable

from pv_judge.pages.blocks import Block, Grid, Heading, Items, Paragraph, Picture
from pv_judge.pages.text import markdown

__all__ = ["to_markdown"]


def to_markdown(blocks: Iterable[Block], picture: str) -> str:
    """Text that shows `picture`, a file beside it. Whatever comes from outside is escaped."""
    return "\n".join(
        line for number, block in enumerate(blocks) for line in _lines(block, picture, number == 0)
    )


def _lines(block: Block, picture: str, first: bool) -> list[str]:
    if isinstance(block, Heading):
        return [f"{'#' if first else '##'} {markdown(block.text)}", ""]
    if isinstance(block, Paragraph):
        return [markdown(block.text), ""]
    if isinstance(block, Items):
        return [*(f"- {markdown(line)}" for line in block.lines), ""]
    if isinstance(block, Picture):
        return [f"![curves of the runs]({picture})", "", markdown(block.caption), ""]
    return [*_table(block), ""]


def _table(grid: Grid) -> list[str]:
    heads = [f"{title}, {unit}" if unit else title for title, unit in grid.heads]
    rule = ["---" if column < grid.leading else "---:" for column in range(len(heads))]
    return [_line(map(markdown, heads)), _line(rule), *(_line(map(markdown, cells)) for cells in grid.lines)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
