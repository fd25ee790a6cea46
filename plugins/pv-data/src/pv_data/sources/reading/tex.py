"""Problems and solutions in a LaTeX file: its tree by pylatexenc, and the parts by environment, item or section."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pv_data.sources.reading.fields import LONGEST, checked
from pv_data.sources.reading.files import opened
from pv_data.sources.reading.unusable import Unusable
from pv_rl.weights.needs import needs

__all__ = ["Names", "Part", "parse", "parts"]

SECTIONS = frozenset({"part", "chapter", "section", "subsection", "subsubsection"})
LISTS = frozenset({"itemize", "enumerate", "description"})
PUTNAM = re.compile(r"(?:problem)?\W{0,3}([AB])\W{0,3}([1-6])\W{0,3}", re.IGNORECASE)
OPTION = re.compile(r"\[[^\[\]]{0,500}\]")


@dataclass(frozen=True, kw_only=True)
class Names:
    """Environments by what they hold."""

    problems: frozenset[str]
    solutions: frozenset[str]
    boxes: frozenset[str]
    """The first in a section is a problem, and the rest of the section its solution."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A problem with its solutions; in a file of solutions, a solution."""

    label: str
    """`A1` to `B6`, or a section's title; empty where it has none."""
    text: str
    solutions: tuple[str, ...] = ()


def parse(path: Path) -> list[Any]:
    """The nodes of what is in the document.

    Raises:
        Unusable: it is broken, too long or too deep, or no UTF-8.
        DataError: it cannot be read.
    """
    with needs("pylatexenc", "a .tex file", "pip install pylatexenc"):
        from pylatexenc.latexwalker import LatexWalker, LatexWalkerError
    with opened(path) as file:
        raw = file.read(4 * LONGEST + 1)
    try:
        text = checked(raw.decode("utf-8-sig"), "file")
        nodes = LatexWalker(text, tolerant_parsing=False).get_latex_nodes()[0]
    except UnicodeDecodeError as error:
        raise Unusable("not UTF-8", str(error)[:200]) from error
    except LatexWalkerError as error:
        raise Unusable("broken LaTeX", str(error)[:300]) from error
    except RecursionError as error:
        raise Unusable("broken LaTeX", "nested too deep") from error
    except (ValueError, IndexError, TypeError, AttributeError, KeyError) as error:
        # its parser stumbles over some broken files instead of saying what is wrong
        raise Unusable("broken LaTeX", f"{type(error).__name__}: {error}"[:300]) from error
    inside = [one for one in nodes if _environment(one) == "document"]
    return list(inside[0].nodelist) if inside else list(nodes)


def parts(nodes: Sequence[Any], names: Names) -> list[Part]:
    """The problems, in order: of lists with Putnam labels if there are any, else of environments and boxes."""
    try:
        return list(_items(nodes)) or [
            one for title, some in _sections(nodes) for one in _of(title, some, names)
        ]
    except RecursionError as error:
        raise Unusable("broken LaTeX", "nested too deep") from error


def _items(nodes: Sequence[Any]) -> Iterator[Part]:
    """Of a label that comes twice the first is the problem, and the others are solutions."""
    found: dict[str, list[str]] = {}
    for one in _walk(nodes, LISTS):
        label, since = "", list[Any]()
        for node in [*one.nodelist, None]:
            named = _putnam(node)
            if node is not None and not named:
                since.append(node)
                continue
            if label:
                found.setdefault(label, []).append(_text(since))
            label, since = named, []
    for label, texts in found.items():
        yield Part(label=label, text=texts[0], solutions=tuple(texts[1:]))


def _putnam(node: Any) -> str:
    """`A1` for `\\item[A1]`, `\\item[A--1]` and `\\item[Problem A1]`."""
    argument = node.nodeargd.argnlist if getattr(node, "macroname", "") == "item" and node.nodeargd else []
    found = PUTNAM.fullmatch(argument[0].latex_verbatim()[1:-1].strip()) if argument and argument[0] else None
    return (found[1] + found[2]).upper() if found else ""


def _sections(nodes: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    title, since = "", list[Any]()
    for node in nodes:
        if getattr(node, "macroname", "") in SECTIONS:
            yield title, since
            title, since = node.nodeargd.argnlist[-1].latex_verbatim()[1:-1].strip()[:100], []
        else:
            since.append(node)
    yield title, since


def _of(title: str, nodes: list[Any], names: Names) -> Iterator[Part]:
    box = next((at for at, node in enumerate(nodes) if _environment(node) in names.boxes), None)
    if box is not None and title:
        rest = _text(nodes[box + 1 :])
        yield Part(label=title, text=_text(nodes[box].nodelist), solutions=(rest,) if rest else ())
        return
    current: Part | None = None
    for node in _walk(nodes, names.problems | names.solutions):
        if _environment(node) in names.solutions:
            if current is None:
                raise Unusable("solution without problem", f"in the section {title!r}")
            current = replace(current, solutions=(*current.solutions, _text(node.nodelist)))
            continue
        if current is not None:
            yield current
        inner = [one for one in node.nodelist if _environment(one) in names.solutions]
        text = _text([one for one in node.nodelist if one not in inner])
        current = Part(label="", text=text, solutions=tuple(_text(one.nodelist) for one in inner))
    if current is not None:
        yield current


def _walk(nodes: Sequence[Any], wanted: frozenset[str]) -> Iterator[Any]:
    """Environments of these names, in order; not those within each other, but for lists."""
    for node in nodes:
        name = _environment(node)
        if name in wanted:
            yield node
        elif name:
            yield from _walk(node.nodelist, wanted)


def _environment(node: Any) -> str:
    return getattr(node, "environmentname", None) or ""


def _text(nodes: Sequence[Any]) -> str:
    """As it is written, without comments of its own and without `[...]` right behind `\\begin{...}`."""
    text = "".join(one.latex_verbatim() for one in nodes if type(one).__name__ != "LatexCommentNode")
    return OPTION.sub("", text, count=1).strip() if OPTION.match(text) else text.strip()
