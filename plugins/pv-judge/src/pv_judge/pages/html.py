"""HTML renderer: one file without external resources, from the template `page.html.j2`.

The template escapes all text. The page's Content-Security-Policy would stop a script or a request even if it did not.
A page that is kept up to date has a script that fetches the page again and replaces the content, so that the scroll
position stays, and one with sortable tables another. The policy allows both by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from pv_judge.pages.blocks import Block, Heading
from pv_judge.pages.curve import HEIGHT, WIDTH, marks, polylines
from pv_judge.pages.text import INTERVAL, visible

__all__ = ["open_templates", "to_html"]

UPDATE = """
(() => {
  const main = () => document.querySelector("main");
  const key = "scroll:" + location.pathname;
  const again = () => { if (main().dataset.refresh) setTimeout(update, 1000 * main().dataset.refresh); };
  async function update() {
    if (location.protocol === "file:") {  // browsers do not fetch files: load again, and scroll to where it was
      sessionStorage.setItem(key, scrollY);
      location.reload();
      return;
    }
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const place = [...document.querySelectorAll(".wide, pre")].map((one) => [one.scrollLeft, one.scrollTop]);
      document.title = page.title;
      main().replaceWith(page.querySelector("main"));
      document.querySelectorAll(".wide, pre").forEach((one, i) => {
        if (place[i]) [one.scrollLeft, one.scrollTop] = place[i];
      });
      delete document.body.dataset.stale;
    } catch { document.body.dataset.stale = "1"; }
    again();
  }
  const kept = sessionStorage.getItem(key);
  if (kept !== null) { sessionStorage.removeItem(key); scrollTo(0, kept); }
  again();
})();
"""
"""The script of a page that is kept up to date."""
SORT = """
(() => {
  const number = /^[<$]?\\s*([+-]?\\d[\\d,]*(?:\\.\\d+)?(?:e[+-]?\\d+)?)(?= |$)/i;
  const empty = (text) => text === "" || text === "-";
  function sort(head) {
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [row.cells[head.cellIndex].textContent.trim(), row]);
    const known = rows.filter(([text]) => !empty(text));
    const numbers = known.every(([text]) => number.test(text));
    const value = (text) => parseFloat(number.exec(text)[1].replaceAll(",", "")) - (text[0] === "<" ? 1e-9 : 0);
    const up = head.ariaSort ? head.ariaSort === "descending" : !numbers;
    known.sort(([a], [b]) => numbers ? value(a) - value(b) : a.localeCompare(b, "en", { numeric: true }));
    if (!up) known.reverse();
    head.parentNode.querySelectorAll("[aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
    head.ariaSort = up ? "ascending" : "descending";
    body.append(...[...known, ...rows.filter(([text]) => empty(text))].map(([, row]) => row));
  }
  document.querySelectorAll("thead th").forEach((head) => {
    head.tabIndex = 0;
    head.title = "Sort by this column";
    head.addEventListener("click", () => sort(head));
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head); });
  });
  document.body.dataset.sortable = "1";
})();
"""
"""The script of a page whose tables can be sorted; without it the tables are read as they are."""

FEWEST = 4
"""Sections of a page that has a list of contents."""


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def to_html(
    blocks: Iterable[Block],
    pictures: Mapping[str, bytes] | None = None,
    *,
    title: str | None = None,
    refresh: float | None = None,
    sortable: bool = False,
) -> str:
    """A page with its pictures inside, and with a list of contents where it has four sections or more.

    Args:
        blocks: all of it.
        pictures: PNG files by name, one for each `Picture`.
        title: of the browser's tab; the first heading's text by default.
        refresh: seconds after which a browser updates the page; None for never.
        sortable: whether a click on the head of a column sorts its table.
    """
    known = list(blocks)
    scripts = [UPDATE] * bool(refresh) + [SORT] * sortable
    heading = next((block.text for block in known if isinstance(block, Heading)), "Report")
    sections = [
        (place, one.text) for place, one in enumerate(known) if isinstance(one, Heading) and one.level == 2
    ]
    return _template().render(
        blocks=known,
        pictures={name: base64.b64encode(data).decode("ascii") for name, data in (pictures or {}).items()},
        title=title or heading,
        refresh=max(1, round(refresh)) if refresh else None,
        contents=[] if refresh or len(sections) < FEWEST else sections,
        scripts=[(Markup(script), _hash(script)) for script in scripts],  # noqa: S704 - ours
    )


def open_templates(package: str, folder: str) -> Environment:
    """Templates in a folder of a package. They escape all text, and may include `colours.css` of all pages."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package, folder), PackageLoader("pv_judge", "pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )


@cache
def _template() -> Template:
    environment = open_templates("pv_judge", "pages")
    environment.globals |= {"polylines": polylines, "marks": marks, "curve_size": f"0 0 {WIDTH} {HEIGHT}"}
    environment.globals |= {"interval": _interval}
    return environment.get_template("page.html.j2")


def _interval(cell: str) -> tuple[str, ...] | None:
    """A number and its interval, which has a line of its own in a table of many columns."""
    found = INTERVAL.fullmatch(cell)
    return found.groups() if found else None
