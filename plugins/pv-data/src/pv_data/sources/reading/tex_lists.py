r"""Lists of Putnam labels (`\item[A1]` to `\item[B6]`): which items are problems, and which are whose solutions.

A list is one of solutions if a heading over it says so. Its items are those of the one set of problems before it, or of
the set of the same year. Where a label comes again and no heading says why, nobody can tell what the item is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pv_data.sources.reading.tex_marks import Mark

__all__ = ["Item", "items"]

SHORT = 60
"""Characters of text over a list that may be its heading."""
SOLUTIONS = re.compile(r"\b(?:solution|proof|answer)s?\b", re.IGNORECASE)
PROBLEMS = re.compile(r"\b(?:problem|exercise|question)s?\b", re.IGNORECASE)
ELSEWHERE = re.compile(r"\b(?:end|below|follow|following|next|see|without|no|hints?)\b", re.IGNORECASE)
YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
MEND = "head each list of solutions by `Solutions`, with the year where there are several"


@dataclass(kw_only=True)
class Item:
    """One item: a problem, a solution of one, or set aside."""

    label: str
    over: str = ""
    """The heading over it, where the file has several sets of problems."""
    is_solution: bool = False
    of: int | None = None
    """Of a solution, where its problem stands; None in a file of solutions."""
    aside: tuple[str, str] | None = None
    """Why it is neither, or nobody's: a reason, and its detail."""


@dataclass(kw_only=True)
class _Set:
    """The problems of one contest, or the solutions of one."""

    told: Mark | None
    """The heading that makes it one of solutions; None for problems."""
    year: str
    title: str
    at: dict[str, list[int]] = field(default_factory=dict)
    """By label, where its items stand."""
    order: list[int] = field(default_factory=list)

    def scattered(self, label: str) -> bool:
        """Whether items of other labels stand between those of this one."""
        places = [self.order.index(at) for at in self.at[label]]
        return places[-1] - places[0] >= len(places)


def items(found: Sequence[Mark], *, answers: bool) -> dict[int, Item]:
    """For each mark that is an item, by its place, what it is.

    Args:
        answers: the whole file is solutions.
    """
    made: dict[int, Item] = {}
    sets = _answers(found) if answers else list(_sets(found, made))
    problems = [one for one in sets if one.told is None]
    waiting = list[_Set]()
    for one in sets:
        for label, places in one.at.items():
            for at in places:
                over = one.title if len(problems) > 1 else ""
                made[at] = Item(label=label, over=over, is_solution=one.told is not None or answers)
        if answers or one.told is not None:
            near = waiting[-1:] if len(waiting) == 1 else []
            mine = [other for other in problems if one.year and other.year == one.year] or [
                other for other in near if not one.year or not other.year
            ]
            for label in one.at:
                _attach(made, one, label, mine, answers)
            waiting = []
        else:
            waiting.append(one)
    return made


def _attach(made: dict[int, Item], one: _Set, label: str, mine: Sequence[_Set], answers: bool) -> None:
    for at in one.at[label]:
        if one.scattered(label):
            made[at].aside = "unclear solution", f"{label} comes again after other labels; {MEND}"
        elif answers:
            continue
        elif len(mine) != 1:
            made[at].aside = (
                "unclear solution",
                f"{len(mine) or 'no'} sets of problems may be its own; {MEND}",
            )
        elif label not in mine[0].at:
            made[at].aside = "solution without problem", f"no problem is labelled {label}"
        else:
            made[at].of = mine[0].at[label][0]


def _answers(found: Sequence[Mark]) -> list[_Set]:
    one = _Set(told=None, year="", title="")
    for at, mark in enumerate(found):
        if mark.kind == "item":
            _add(one, mark, at)
    return [one]


def _sets(found: Sequence[Mark], made: dict[int, Item]) -> Iterator[_Set]:
    """Problems and solutions in their order; what is neither for certain goes into `made`."""
    path, before, now, lost = list[Mark](), list[Mark](), None, False
    seen = set[str]()
    for at, mark in enumerate(found):
        if _is_heading(mark):
            path = [*(one for one in path if one.level < mark.level), mark]
        if mark.kind != "item":
            continue
        told = next((one for one in path if _tells(one.name) is True), None)
        year = next((one[0] for one in (YEAR.search(over.name) for over in reversed(path)) if one), "")
        fresh, before = path != before, path
        unsure = any(_tells(one.name) is None for one in path)
        again = mark.name in seen if unsure else not fresh and now is not None and mark.name in now.at
        lost = (lost and not fresh) or (told is None and again)
        if lost:
            made[at] = Item(
                label=mark.name,
                aside=("problem or solution", f"{mark.name} came before and no heading parts them; {MEND}"),
            )
            continue
        new = now is None or now.told is not told or now.year != year
        if now is None or new or (told is None and mark.name in now.at):
            now = _Set(told=told, year=year, title=path[-1].name if path else "")
            yield now
        _add(now, mark, at)
        if told is None:
            seen.add(mark.name)


def _add(one: _Set, mark: Mark, at: int) -> None:
    one.at.setdefault(mark.name, []).append(at)
    one.order.append(at)


def _is_heading(mark: Mark) -> bool:
    if mark.kind == "words":
        told = any(one.search(mark.name) for one in (SOLUTIONS, PROBLEMS, YEAR))
        return told and len(mark.name) <= SHORT
    return mark.kind == "heading"


def _tells(title: str) -> bool | None:
    """Whether a heading says that what is under it is solutions; None where it names them without saying so."""
    if not SOLUTIONS.search(title):
        return False
    return None if PROBLEMS.search(title) or ELSEWHERE.search(title) else True
