r"""Solution matcher: which solution is of which problem; what the file leaves in doubt is `Loose` and gets no label.

A solution is a problem's if it ends the problem's environment, if it stands right behind the only problem that waits
for one, or if it names it. What stands behind a lemma, or behind several problems, may be another's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pv_data.sources.reading.tex import (
    NUMBER,
    SECTIONS,
    environment,
    is_one_solution,
    is_ref,
    names_of,
    option,
    plain,
    said_of,
    text,
    words,
)
from pv_data.sources.reading.tex_lists import Item, items
from pv_data.sources.reading.tex_marks import PLAIN, UNREAD, Mark, Names, marks
from pv_data.sources.reading.unusable import Unusable

__all__ = ["Loose", "Part", "parts"]

UNCLEAR = "unclear solution"
MEND = (
    "put it right behind its problem or at the end of the problem's environment, or name the problem: "
    r"\begin{problem}[NAME], \begin{solution}[NAME]"
)


@dataclass(kw_only=True)
class Part:
    """A problem with its solutions; in a file of solutions, a label with its solutions and no text."""

    label: str
    """`A1` to `B6`, or a section's title; empty where it has none."""
    text: str
    names: frozenset[str] = frozenset()
    """What a solution may call it."""
    solutions: list[str] = field(default_factory=list)
    closed: bool = False
    """Its environment ends with its solutions: one behind it has to name it."""


@dataclass(frozen=True, kw_only=True)
class Loose:
    """What is set aside: a problem or a solution."""

    reason: str
    detail: str
    text: str


Made = dict[int, list[Part | Loose]]
"""By the place of the mark that it is made from."""


def parts(nodes: Sequence[Any], names: Names, *, answers: bool = False) -> list[Part | Loose]:
    """The problems in order, and what cannot be given to one of them.

    Args:
        answers: the file is one of solutions, and its lists of Putnam labels are.
    """
    try:
        found = list(marks(nodes, names))
        made: Made = {}
        known = frozenset[str]().union(*(names_of(mark.name) for mark in found if mark.kind == "problem"))
        for at, mark in enumerate(found):
            if mark.kind == "problem":
                made[at] = _problem(mark, names, known)
            elif mark.kind == "box":
                made[at] = _box(mark, names)
        _lists(found, items(found, answers=answers), made, names, known)
        _solutions(found, made)
    except RecursionError as error:
        raise Unusable("broken LaTeX", "nested too deep") from error
    return [one for at in sorted(made) for one in made[at]]


def _problem(mark: Mark, names: Names, known: frozenset[str], label: str = "") -> list[Part | Loose]:
    """The statement, and the solutions at its end."""
    inner = [one for one in mark.nodes if environment(one) in names.solutions]
    rest = [one for one in mark.nodes if environment(one) not in names.solutions]
    if any(_has(one, names.solutions) for one in rest):
        return [Loose(reason="solution in problem", detail=f"within the statement; {MEND}", text=text(rest))]
    made = Part(
        label=label,
        text=text(rest),
        names=names_of(label or mark.name, mark.nodes),
        closed=bool(inner),
    )
    if not inner:
        return [made]
    first = mark.nodes.index(inner[0])
    states = any(environment(one) and environment(one) not in PLAIN for one in mark.nodes[:first])
    parted = words([one for one in mark.nodes[first:] if environment(one) not in UNREAD | names.solutions])
    loose = list[Part | Loose]()
    for one in inner:
        said = said_of(option(one), known)
        if states or (parted and not is_one_solution(parted)) or (said and said not in made.names):
            why = "another statement or more text stands in the same problem, or it names another or a part"
            loose.append(Loose(reason=UNCLEAR, detail=f"{why}; {MEND}", text=text(one.nodelist)))
        else:
            made.solutions.append(text(one.nodelist))
    return [made, *loose]


def _box(mark: Mark, names: Names) -> list[Part | Loose]:
    """The box, and the rest of its section, unless another problem is in it."""
    box, rest = mark.nodes[0], mark.nodes[1:]
    made = Part(label=mark.name, text=text(box.nodelist), names=names_of(mark.name, box.nodelist))
    if not words([one for one in rest if not _is_silent(one)]):
        return [made]
    alike = any(environment(one) == environment(box) and option(one) == option(box) for one in rest)
    if alike or mark.shared:
        why = f"the section {mark.name!r} has another problem: give each a section of its own"
        return [made, Loose(reason=UNCLEAR, detail=why, text=text(rest))]
    made.solutions.append(text(rest))
    return [made]


def _is_silent(node: Any) -> bool:
    """A heading, or an environment that is not read: no solution by itself."""
    return environment(node) in UNREAD or getattr(node, "macroname", "") in SECTIONS


def _lists(
    found: Sequence[Mark], listed: dict[int, Item], made: Made, names: Names, known: frozenset[str]
) -> None:
    """Problems first: a solution's problem may be behind it."""
    for at, item in listed.items():
        if item.aside is not None:
            made[at] = [Loose(reason=item.aside[0], detail=item.aside[1], text=text(found[at].nodes))]
        elif not item.is_solution:
            made[at] = _problem(found[at], names, known, item.label)
            for one in made[at]:
                if isinstance(one, Part):
                    one.label, one.closed = f"{item.over} {item.label}".strip(), True
    own: dict[str, Part] = {}
    for at, item in listed.items():
        if item.aside is not None or not item.is_solution:
            continue
        solution = text(found[at].nodes)
        of = made[item.of][0] if item.of is not None else own.get(item.label)
        if of is None:
            of = own[item.label] = Part(label=item.label, text="", names=names_of(item.label))
            made[at] = [of]
        if isinstance(of, Part):
            of.solutions.append(solution)
        else:
            made[at] = [Loose(reason="solution without problem", detail="which is set aside", text=solution)]


def _solutions(found: Sequence[Mark], made: Made) -> None:
    """Give each environment of a solution to its problem."""
    drafts = [one for several in made.values() for one in several if isinstance(one, Part)]
    count = Counter(name for one in drafts for name in one.names)
    by_name = {name: one for one in drafts for name in one.names if count[name] == 1}
    waiting, near, answered = list[Part | Loose](), False, False
    for at, mark in enumerate(found):
        if mark.kind == "problem":
            one = made[at][0]
            # a heading ends nothing: the problems of several sections may have their solutions behind the last
            waiting, answered = [*([] if answered else waiting), one], False
            near = isinstance(one, Part) and not one.closed
        elif mark.kind == "solution":
            answered = True
            said = said_of(mark.name, count)
            behind = waiting[0] if near and len(waiting) == 1 else None
            of = by_name.get(said) if is_ref(said) or (behind is None and _may_name(said, waiting)) else None
            if of is None and isinstance(behind, Part) and (not said or said in behind.names):
                of = behind
            near = of is not None and of is behind
            if of is None:
                made[at] = [_nobodys(mark, waiting)]
            else:
                of.solutions.append(text(mark.nodes))
        elif mark.kind not in ("words", "heading") or not is_one_solution(plain(mark.name)):
            near = False


def _may_name(said: str, waiting: Sequence[Part | Loose]) -> bool:
    """A number may be that of a second solution, or of another day's problem: it names one that waits, if all do."""
    called = [one.names if isinstance(one, Part) else frozenset[str]() for one in waiting]
    return not NUMBER.fullmatch(said) or (all(called) and any(said in one for one in called))


def _nobodys(mark: Mark, waiting: Sequence[Part | Loose]) -> Loose:
    if not waiting:
        reason, why = "solution without problem", "none stands before it"
    elif len(waiting) > 1:
        reason, why = UNCLEAR, f"{len(waiting)} problems before it have none"
    else:
        reason, why = UNCLEAR, "it names another or a part, or something stands between it and its problem"
    return Loose(reason=reason, detail=f"{why}; {MEND}", text=text(mark.nodes))


def _has(node: Any, wanted: frozenset[str]) -> bool:
    """Whether an environment of these names is somewhere in it."""
    inside = [] if environment(node) in UNREAD else getattr(node, "nodelist", None) or []
    return any(environment(one) in wanted or _has(one, wanted) for one in inside)
