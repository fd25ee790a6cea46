"""LaTeX outline: headings, problems, solutions, and what is between them, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

from pv_data.sources.reading.tex import LISTS, SECTIONS, environment, option, putnam, words

__all__ = ["PLAIN", "PROBLEMS", "UNREAD", "Mark", "Names", "marks"]

UNREAD = frozenset(
    {
        "comment",
        "verbatim",
        "lstlisting",
        "asy",
        "asydef",
        "tikzpicture",
        "picture",
        "figure",
        "wrapfigure",
        "hint",
    }
)
LAYOUT = LISTS | {
    *("document", "center", "flushleft", "flushright", "minipage", "multicols", "samepage", "small", "large"),
    *("quote", "quotation", "framed", "mdframed", "tcolorbox", "table", "tabular", "tabbing", "parts"),
}
MATH = frozenset(
    {
        *("math", "displaymath", "equation", "align", "alignat", "flalign", "gather", "multline", "eqnarray"),
        *("aligned", "alignedat", "gathered", "split", "cases", "array", "subequations", "smallmatrix"),
        *("matrix", "pmatrix", "bmatrix", "vmatrix", "Vmatrix", "Bmatrix"),
    }
)
PROBLEMS = re.compile(r"\b(?:problem|exercise|question)s?\b", re.IGNORECASE)
PLAIN = UNREAD | LAYOUT | MATH
"""Environments that state nothing of their own; another one may be a lemma, and what follows its proof."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """Environments by what they hold."""

    problems: frozenset[str]
    solutions: frozenset[str]
    boxes: frozenset[str]
    """The first in a section is a problem, and the rest of the section its solution."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One of them."""

    kind: Literal["heading", "words", "wall", "problem", "solution", "item", "box"]
    """`wall`: an environment that may state something, or the begin of a list; `item`: of a list with Putnam labels."""
    level: int = 0
    """Of a heading, the highest the smallest."""
    name: str = ""
    """A heading's title, what is in `[...]` behind an environment's begin, an item's label, a box's section."""
    nodes: tuple[Any, ...] = ()
    """What is in it; of a box, of it and of the rest of its section, lower ones with it."""
    shared: bool = False
    """Of a box: lower sections have problems of their own, and are not in it."""


def marks(nodes: Sequence[Any], names: Names) -> Iterator[Mark]:
    """In order, with the environments that hold problems or solutions whole."""
    sections = list(_sections(nodes))
    at = 0
    while at < len(sections):
        title, own = sections[at]
        at += 1
        if title is not None:
            yield _heading(title)
        box = next((place for place, one in enumerate(own) if environment(one) in names.boxes), None)
        if box is None or title is None or _has_problems(own, names):
            yield from _walk(own, names)
            continue
        lower = list(takewhile(lambda one, title=title: _is_under(one[0], title), sections[at:]))
        shared = any(
            PROBLEMS.search(_title(head)) or _has_problems(one, names, boxes=True) for head, one in lower
        )
        rest = [] if shared else [node for head, one in lower for node in (head, *one)]
        at += 0 if shared else len(lower)
        yield Mark(kind="box", name=_title(title), nodes=(*own[box:], *rest), shared=shared)


def _sections(nodes: Sequence[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Each heading with what follows it up to the next one of any level; None before the first."""
    title, since = None, list[Any]()
    for node in nodes:
        if _level(node) is None:
            since.append(node)
            continue
        yield title, since
        title, since = node, []
    yield title, since


def _is_under(head: Any, title: Any) -> bool:
    return (_level(head) or 0) > (_level(title) or 0)


def _has_problems(nodes: Sequence[Any], names: Names, *, boxes: bool = False) -> bool:
    """Whether a problem's environment or a Putnam label is somewhere in it, or a box at its top."""
    return any(one.kind in ("problem", "item") for one in _walk(nodes, names)) or (
        boxes and any(environment(one) in names.boxes for one in nodes)
    )


def _walk(nodes: Sequence[Any], names: Names) -> Iterator[Mark]:
    between = list[Any]()
    for node in nodes:
        name = environment(node)
        if (not name and _level(node) is None) or name in MATH - names.problems - names.solutions:
            between.append(node)
            continue
        if name in UNREAD - names.problems - names.solutions:
            continue
        yield from _words(between)
        between = []
        if not name:
            yield _heading(node)
        elif name in names.problems or name in names.solutions:
            kind = "solution" if name in names.solutions else "problem"
            yield Mark(kind=kind, name=option(node), nodes=tuple(node.nodelist))
        elif name in LISTS and any(map(putnam, node.nodelist)):
            yield Mark(kind="wall")  # items that follow each other are of one list
            yield from _items(node.nodelist)
        else:
            if name not in PLAIN:
                yield Mark(kind="wall")
            yield from _walk(node.nodelist, names)
    yield from _words(between)


def _items(nodes: Sequence[Any]) -> Iterator[Mark]:
    label, since = "", list[Any]()
    for node in [*nodes, None]:
        named = putnam(node)
        if node is not None and not named:
            since.append(node)
            continue
        if label:
            yield Mark(kind="item", name=label, nodes=tuple(since))
        label, since = named, []


def _words(nodes: Sequence[Any]) -> Iterator[Mark]:
    if words(nodes):
        yield Mark(kind="words", level=len(SECTIONS), name=words(nodes))


def _level(node: Any) -> int | None:
    name = getattr(node, "macroname", "")
    return SECTIONS.index(name) if name in SECTIONS else None


def _title(node: Any) -> str:
    # `\part` has none, which exam.cls has for its items
    given = node.nodeargd.argnlist if node.nodeargd else []
    return given[-1].latex_verbatim()[1:-1].strip()[:100] if given and given[-1] else ""


def _heading(node: Any) -> Mark:
    return Mark(kind="heading", level=_level(node) or 0, name=_title(node))
