"""The report as one HTML file: no script, nothing to fetch."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

from pv_judge.pages.blocks import Block, Grid, Heading, Items, Paragraph, Picture

__all__ = ["to_html"]

STYLE = """
:root { color-scheme: light dark; --line: #d0d0d0; --head: #f2f2f2; --text: #1c1c1c; --page: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444444; --head: #2a2a2a; --text: #e4e4e4; --page: #181818; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: right; white-space: nowrap; }
th { background: var(--head); vertical-align: bottom; } th small { display: block; font-weight: normal; }
.name { text-align: left; }
img { width: 100%; height: auto; background: #ffffff; border-radius: 4px; }
li { overflow-wrap: anywhere; }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""For the browser: even if something were not escaped, it may neither run nor fetch."""


def to_html(blocks: Iterable[Block], picture: bytes) -> str:
    """A page with `picture`, a PNG, inside. Whatever comes from outside is escaped."""
    known = list(blocks)
    title = known[0].text if isinstance(known[0], Heading) else "Report"
    body = "\n".join(_block(block, picture, number == 0) for number, block in enumerate(known))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _block(block: Block, picture: bytes, first: bool) -> str:
    if isinstance(block, Heading):
        tag = "h1" if first else "h2"
        return f"<{tag}>{escape(block.text)}</{tag}>"
    if isinstance(block, Paragraph):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in block.lines)}</ul>"
    if isinstance(block, Picture):
        data = base64.b64encode(picture).decode("ascii")
        return f'<img alt="curves of the runs" src="data:image/png;base64,{data}">\n<p>{escape(block.caption)}</p>'
    return _table(block)


def _table(grid: Grid) -> str:
    heads = (
        f"<th{_kind(column, grid)}>{escape(title)}{f'<small>{escape(unit)}</small>' if unit else ''}</th>"
        for column, (title, unit) in enumerate(grid.heads)
    )
    lines = (
        f"<tr>{''.join(f'<td{_kind(column, grid)}>{escape(cell)}</td>' for column, cell in enumerate(cells))}</tr>"
        for cells in grid.lines
    )
    rows = "\n".join(lines)
    head = f"<thead><tr>{''.join(heads)}</tr></thead>"
    return f'<div class="wide"><table>\n{head}\n<tbody>\n{rows}\n</tbody></table></div>'


def _kind(column: int, grid: Grid) -> str:
    return ' class="name"' if column < grid.leading else ""
