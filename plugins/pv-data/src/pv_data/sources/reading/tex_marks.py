"""LaTeX outline: headings, problems, solutions, and what is between them, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Literal

from pv_data.sources.reading.tex import (
    LISTS,
    MATH,
    PLAIN,
    SECTIONS,
    UNREAD,
    emphasised,
    environment,
    head,
    level,
    macro,
    option,
    plain,
    title,
    words,
)
from pv_data.sources.reading.tex_names import begins_solution, putnam
from pv_data.sources.reading.tex_source import Source

__all__ = ["PROBLEMS", "Mark", "Names", "marks", "opens_solution"]

PROBLEMS = re.compile(r"\b(?:problem|exercise|question)s?\b", re.IGNORECASE)
NUMBERED = re.compile(r"\W*(?:problem|exercise|question)\b.{0,60}", re.IGNORECASE | re.DOTALL)
"""A heading of one problem."""
DOUBTFUL = re.compile(r"wrong|sketch|draft|hint|bogus|fake|attempt|student|remark")
"""Environments of which the solutions are not right and full."""
QUESTIONS = frozenset({"question", "titledquestion", "bonusquestion"})
"""Macros of exam.cls that begin a problem."""


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
    """A heading's title, a title of an environment, an item's label, a box's section."""
    nodes: tuple[Any, ...] = ()
    """What is in it; of a box, of it and of the rest of its section, lower ones with it."""
    node: Any = None
    """The environment, heading or item; None for words."""
    at: int = 0
    """Its position in the file."""
    env: str = ""
    """Its environment."""
    shared: bool = False
    """Of a box: lower sections have problems of their own, and are not in it."""
    doubt: str = ""
    """Why nobody can tell whether it is typeset."""


def opens_solution(node: Any, names: Names) -> bool:
    r"""An environment of a solution, `\textbf{Solution.}` or a macro `\solution`."""
    named = {environment(node), macro(node)} & names.solutions
    return bool(named) or begins_solution(plain(emphasised(node)))


def marks(source: Source, names: Names) -> list[Mark]:
    """In order, with the environments that hold problems or solutions whole."""
    return list(_Outline(source, names).of(source.nodes))


@dataclass(frozen=True)
class _Outline:
    source: Source
    names: Names
    all: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "all", self.names.problems | self.names.solutions)

    def of(self, nodes: Sequence[Any]) -> Iterator[Mark]:
        sections = list(_parted(nodes, lambda node: level(node) is not None))
        at = 0
        while at < len(sections):
            over, own = sections[at]
            at += 1
            yield from () if over is None else [self._heading(over)]
            box = next((place for place, one in enumerate(own) if environment(one) in self.names.boxes), None)
            if box is None or over is None or self._has_problems(own):
                yield from self._problem_of_section(over, own) or self.walk(own)
                continue
            lower = list(
                takewhile(lambda one, over=over: (level(one[0]) or 0) > (level(over) or 0), sections[at:])
            )
            shared = any(
                PROBLEMS.search(title(below)) or self._has_problems(one, boxes=True) for below, one in lower
            )
            rest = [] if shared else [node for below, one in lower for node in (below, *one)]
            at += 0 if shared else len(lower)
            yield self._mark("box", own[box], title(over), (*own[box:], *rest), shared=shared)

    def _has_problems(self, nodes: Sequence[Any], *, boxes: bool = False) -> bool:
        """Whether a problem's environment or a Putnam label is somewhere in it, or a box at its top."""
        return any(one.kind in ("problem", "item") for one in self.walk(nodes)) or (
            boxes and any(environment(one) in self.names.boxes for one in nodes)
        )

    def _problem_of_section(self, over: Any, own: Sequence[Any]) -> list[Mark]:
        """`\\section{Problem 2}`, text, and a solution behind it."""
        if over is None or not NUMBERED.fullmatch(title(over)) or self._has_problems(own):
            return []
        first = next((at for at, one in enumerate(own) if opens_solution(one, self.names)), 0)
        return [self._mark("problem", own[0], title(over), own)] if words(own[:first]) else []

    def walk(self, nodes: Sequence[Any]) -> Iterator[Mark]:
        """The marks of one level, and of the environments and braces in it."""
        if any(macro(one) in QUESTIONS for one in nodes):
            for begin, own in _parted(nodes, lambda one: macro(one) in QUESTIONS):
                mark = None if begin is None else self._mark("problem", begin, "", own)
                yield from self.walk(own) if mark is None else [replace(mark, env="question")]
            return
        between, before, owner = list[Any](), None, None
        for node in nodes:
            name, last, before = environment(node), before, node
            behind = last is not None and last.pos + last.len == node.pos
            if macro(last) or not behind or type(node).__name__ != "LatexGroupNode":
                owner = last if macro(last) and behind else None
            inside = type(node).__name__ == "LatexGroupNode" and any(
                environment(one) for one in node.nodelist
            )
            if not (name or inside or level(node) is not None) or name in MATH - self.all:
                between.append(node)
                continue
            if name in UNREAD - self.all:
                continue
            yield from _words(between)
            between = []
            if inside:
                why = f"\\{macro(owner)} may not print it" if owner is not None else ""
                yield from _doubted(self.walk(node.nodelist), why)
            elif not name:
                yield self._heading(node)
            elif name in self.all:
                kind = "solution" if name in self.names.solutions else "problem"
                said = head(node)
                yield self._mark(kind, node, said[0] or said[1], node.nodelist)
            elif name in LISTS and any(putnam(option(one)) for one in node.nodelist):
                yield Mark(kind="wall")  # items that follow each other are of one list
                for item, own in _parted(node.nodelist, lambda one: macro(one) == "item"):
                    label = "" if item is None else putnam(option(item))
                    yield from [self._mark("item", item, label, own)] if label else self.walk(own)
            else:
                yield from [] if name in PLAIN else [Mark(kind="wall", env=name)]
                yield from _doubted(
                    self.walk(node.nodelist),
                    f"{name} may hold no right ones" if DOUBTFUL.search(name) else "",
                )
        yield from _words(between)

    def _heading(self, node: Any) -> Mark:
        return Mark(kind="heading", level=level(node) or 0, name=title(node), node=node, at=node.pos)

    def _mark(self, kind: Any, node: Any, name: str, nodes: Sequence[Any], *, shared: bool = False) -> Mark:
        return Mark(
            kind=kind,
            name=name,
            nodes=tuple(nodes),
            node=node,
            at=node.pos,
            env=environment(node),
            shared=shared,
            doubt=self._doubt(node, [node] if environment(node) else nodes),
        )

    def _doubt(self, node: Any, nodes: Sequence[Any]) -> str:
        printed = self.source.defined.get(environment(node), "")
        if environment(node) in self.names.solutions and DOUBTFUL.search(printed.casefold()):
            return f"its environment is defined as {printed[:60]!r}"
        return "a conditional may switch a part of it off" if self.source.may_be_off(nodes) else ""


def _doubted(found: Iterator[Mark], doubt: str) -> Iterator[Mark]:
    for one in found:
        yield replace(one, doubt=one.doubt or doubt) if one.kind in ("problem", "solution", "item") else one


def _parted(nodes: Sequence[Any], begins: Callable[[Any], bool]) -> Iterator[tuple[Any, list[Any]]]:
    """Each node at which a part begins, with what follows it up to the next; None before the first."""
    begin, since = None, list[Any]()
    for node in nodes:
        if begins(node):
            yield begin, since
            begin, since = node, []
        else:
            since.append(node)
    yield begin, since


def _words(nodes: Sequence[Any]) -> Iterator[Mark]:
    if said := words(nodes):
        yield Mark(kind="words", level=len(SECTIONS), name=said)
