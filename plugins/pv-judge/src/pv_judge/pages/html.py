"""HTML renderer: one file without a script that fetches nothing, from the template `page.html.j2`.

The template escapes all text. The page's Content-Security-Policy would stop a script or a request even if it did not.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from pv_judge.pages.blocks import Block, Heading
from pv_judge.pages.curve import HEIGHT, WIDTH, polylines
from pv_judge.pages.text import visible

__all__ = ["to_html"]


def to_html(
    blocks: Iterable[Block],
    pictures: Mapping[str, bytes] | None = None,
    *,
    title: str | None = None,
    refresh: float | None = None,
) -> str:
    """A page with its pictures inside.

    Args:
        blocks: all of it.
        pictures: PNG files by name, one for each `Picture`.
        title: of the browser's tab; the first heading's text by default.
        refresh: seconds after which a browser loads the page again; None for never.
    """
    known = list(blocks)
    heading = next((block.text for block in known if isinstance(block, Heading)), "Report")
    return _template().render(
        blocks=known,
        pictures={name: base64.b64encode(data).decode("ascii") for name, data in (pictures or {}).items()},
        title=title or heading,
        refresh=max(1, round(refresh)) if refresh else None,
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("pv_judge", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.globals |= {"polylines": polylines, "curve_size": f"0 0 {WIDTH} {HEIGHT}"}
    return environment.get_template("page.html.j2")
