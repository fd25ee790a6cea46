r"""Putnam lists (`\item[A1]` to `\item[B6]`): which items are problems, and which are whose solutions.

A list is one of solutions if a heading over it says so and no more: `Solutions`, not `Common wrong solutions`. Its
items are those of the one set of problems before it, if its headings have no other year or number. Where a label comes
again and no heading says why, nobody can tell what the item is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pv_data.sources.reading.tex import plain
from pv_data.sources.reading.tex_marks import PROBLEMS, Mark
from pv_data.sources.reading.tex_names import CONTESTS, DOUBTFUL, is_generic

__all__ = ["Item", "items"]

SHORT = 60
"""Characters of text over a list that may be its heading."""
SOLUTIONS = re.compile(r"\b(?:solution|proof|answer)s?\b", re.IGNORECASE)
WHOLE = re.compile(r"\b(?:solution|proof)s?\b", re.IGNORECASE)
"""Answers alone may be final ones, without a proof."""
BASED = re.compile(r"\bproof[- ]based\b", re.IGNORECASE)
SESSION = re.compile(r".*\b(?:session|part|day|morning|afternoon)\b.*")
"""Running text between two lists of solutions, behind which they go on."""
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
    """Of a solution, the place of its problem; None in a file of solutions."""
    aside: tuple[str, str] | None = None
    """Why it is neither, or nobody's: a reason, and its detail."""


@dataclass(kw_only=True)
class _Set:
    """The problems of one contest, or the solutions of one."""

    told: Mark | None = None
    """The heading that makes it one of solutions; None for problems."""
    title: str = ""
    said: frozenset[str] = frozenset()
    """Numbers, also years, and contests in the headings over it."""
    at: dict[str, list[int]] = field(default_factory=dict)
    """By label, the places of its items."""
    lost: bool = False
    """Nobody can tell whether they are problems or solutions."""

    @property
    def scattered(self) -> bool:
        """Whether a label comes again in another list or behind others: it may be two sets."""
        return any(places[-1] - places[0] >= len(places) for places in self.at.values())


def items(found: Sequence[Mark], *, answers: bool) -> dict[int, Item]:
    """For each mark that is an item, by its place, what it is.

    Args:
        answers: the whole file is solutions.
    """
    made, waiting = dict[int, Item](), list[_Set]()
    sets = list(_sets(found, answers))
    several = sum(one.told is None and not one.lost for one in sets) > 1
    for one in sets:
        is_solution = answers or one.told is not None
        mine = waiting[0] if len(waiting) == 1 and one.said <= (waiting[0].said or one.said) else None
        for label, places in one.at.items():
            aside = _aside(one, label, mine, is_solution, answers)
            of = mine.at[label][0] if mine and is_solution and not answers and aside is None else None
            over = one.title if several else ""
            made |= {
                at: Item(label=label, over=over, is_solution=is_solution, of=of, aside=aside) for at in places
            }
        waiting = [] if is_solution else [*waiting, one]
    return made


def _aside(
    one: _Set, label: str, mine: _Set | None, is_solution: bool, answers: bool
) -> tuple[str, str] | None:
    """Why an item is neither a problem nor the solution of one."""
    if not is_solution:
        why = f"labels of its list came before, and no heading says which are solutions; {MEND}"
        return ("problem or solution", why) if one.lost else None
    if one.scattered:
        return "unclear solution", f"labels of its list come again behind others; {MEND}"
    if answers:
        return None
    if mine is None or mine.lost:
        return "unclear solution", f"which set of problems it is of is not said; {MEND}"
    return None if label in mine.at else ("solution without problem", f"no problem is labelled {label}")


def _sets(found: Sequence[Mark], answers: bool) -> Iterator[_Set]:
    if answers:
        whole = _Set()
        for at, mark in enumerate(found):
            if mark.kind == "item":
                whole.at.setdefault(mark.name, []).append(at)
        yield whole
        return
    path, before, seen, used = list[Mark](), list[Mark](), set[str](), list[Mark]()
    now, parted = _Set(), False
    for at, mark in enumerate(found):
        if _is_heading(mark):
            path, parted = [*(one for one in path if one.level < mark.level), mark], False
        elif mark.kind == "words" and len(mark.name) <= SHORT:
            within = now.told is not None and now.told in path and not SESSION.fullmatch(mark.name)
            parted = parted or within or DOUBTFUL.search(mark.name) is not None
        if mark.kind != "item":
            continue
        over = next((one for one in reversed(path) if _speaks(one.name)), None)
        says = _tells(over.name) if over is not None else False
        if says and any(DOUBTFUL.search(plain(one.name)) for one in path):
            says = None
        told = over if says else None
        words = plain(" ".join(one.name for one in path)).split()
        said = frozenset(one.rstrip("stndrh") for one in words if one in CONTESTS or one[0].isdigit())
        fresh, before = path != before, path
        again = told is None and (mark.name in seen if says is None else not fresh and mark.name in now.at)
        # a heading of solutions under which problems came in between, or words that may be their heading
        again_told = told is not now.told and any(told is one for one in used)
        back = again_told or (parted and told is not None)
        told = None if back else told
        lost = again or back or (now.lost and not fresh)
        new = not now.at or now.told is not told or now.said != said or lost != now.lost
        if new or (fresh and told is None and mark.name in now.at):
            now = _Set(told=told, said=said, title=path[-1].name if path else "", lost=lost)
            used += [told] if told is not None else []
            yield now
        now.at.setdefault(mark.name, []).append(at)
        seen |= {mark.name} if told is None else set()


def _is_heading(mark: Mark) -> bool:
    if mark.kind == "words":
        told = _speaks(mark.name) or YEAR.search(mark.name)
        return bool(told) and len(mark.name) <= SHORT and is_generic(mark.name)
    return mark.kind == "heading"


def _speaks(title: str) -> bool:
    return SOLUTIONS.search(BASED.sub("", title)) is not None or PROBLEMS.search(title) is not None


def _tells(title: str) -> bool | None:
    """Whether a heading says that what is under it is solutions; None where it names them without saying so."""
    if not SOLUTIONS.search(BASED.sub("", title)):
        return False
    return True if is_generic(title) and WHOLE.search(title) and not PROBLEMS.search(title) else None
