"""The report as one HTML file: no script, nothing to fetch, everything from outside escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape

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
from pv_eval.report.charts import Drawn
from pv_eval.report.text import visible
from pv_judge.pages.web_page import POLICY

__all__ = ["to_html"]

STYLE = """
:root { color-scheme: light dark; --line: #d0d0d0; --head: #f2f2f2; --text: #1c1c1c; --page: #ffffff; --dim: #666666;
  --mark: #ffe08a; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444444; --head: #2a2a2a; --text: #e4e4e4; --page: #181818; --dim: #a0a0a0; --mark: #6b5200; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-top: 1.6rem; }
h1, h2, h3, p, li { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: right; white-space: nowrap; }
th { background: var(--head); vertical-align: bottom; } th small { display: block; font-weight: normal; }
.name { text-align: left; }
img { max-width: 100%; height: auto; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1rem; }
figure { margin: .6rem 0; min-width: 0; } figcaption { color: var(--dim); font-size: 13px; }
pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0;
  padding: .5rem .7rem; border: 1px solid var(--line); border-radius: 4px; max-height: 32rem; overflow-y: auto;
  unicode-bidi: isolate; }
mark { background: var(--mark); color: inherit; } .gap { color: var(--dim); font-style: italic; }
"""


def to_html(blocks: Iterable[Block], charts: Mapping[str, Drawn]) -> str:
    """A page with the figures inside."""
    known = list(blocks)
    title = known[0].text if isinstance(known[0], Heading) else "Report"
    body = "\n".join(_block(block, charts, number == 0) for number, block in enumerate(known))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _block(block: Block, charts: Mapping[str, Drawn], first: bool) -> str:
    if isinstance(block, Heading | Subheading):
        tag = "h3" if isinstance(block, Subheading) else "h1" if first else "h2"
        return f"<{tag}>{_safe(block.text)}</{tag}>"
    if isinstance(block, Paragraph):
        return f"<p>{_safe(block.text)}</p>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{_safe(line)}</li>' for line in block.lines)}</ul>"
    if isinstance(block, Chart):
        return _chart(block, charts[block.name])
    if isinstance(block, Text):
        return _text(block)
    if isinstance(block, Excerpts):
        return f'<div class="beside">{"".join(map(_text, block.columns))}</div>'
    return _table(block)


def _chart(block: Chart, drawn: Drawn) -> str:
    light, dark = (
        "data:image/png;base64," + base64.b64encode(data).decode("ascii")
        for data in (drawn.light, drawn.dark)
    )
    return (
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="{_safe(block.name)}" src="{light}"></picture>'
        f"<figcaption>{_safe(block.caption)}</figcaption></figure>"
    )


def _text(block: Text) -> str:
    tags = {"text": "{}", "mark": "<mark>{}</mark>", "gap": '\n<span class="gap">{}</span>\n'}
    inside = "".join(tags[piece.kind].format(_safe(piece.text)) for piece in block.pieces)
    # browsers drop a line break right behind <pre>
    return f"<figure><figcaption>{_safe(block.title)}</figcaption><pre>\n{inside}</pre></figure>"


def _table(grid: Grid) -> str:
    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(
            f"<{tag}{' class=name' if column < grid.leading else ''}>{text}</{tag}>"
            for column, text in enumerate(texts)
        )

    heads = (f"{_safe(title)}{f'<small>{_safe(unit)}</small>' if unit else ''}" for title, unit in grid.heads)
    lines = "\n".join(f"<tr>{cells('td', map(_safe, line))}</tr>" for line in grid.lines)
    return (
        f'<div class="wide"><table>\n<thead><tr>{cells("th", heads)}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def _safe(text: str) -> str:
    return escape(visible(text))
