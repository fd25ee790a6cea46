r"""Solution matcher: which solution is of which problem. What the file leaves in doubt becomes `Loose`.

A solution is a problem's if it ends the problem's environment, if it is right behind the only problem that waits for
one, or if it names it. What is behind a lemma, or behind several problems, may be another's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pv_data.sources.reading.tex import plain, text
from pv_data.sources.reading.tex_lists import Item, items
from pv_data.sources.reading.tex_marks import Mark, Names, marks
from pv_data.sources.reading.tex_names import (
    NOBODYS,
    NUMBER,
    is_alternative,
    is_one_solution,
    is_ref,
    names_of,
)
from pv_data.sources.reading.tex_openings import announced, denied, doubtful_heading, said_by_body
from pv_data.sources.reading.tex_parts import UNCLEAR, Loose, Part, Solution
from pv_data.sources.reading.tex_source import Source
from pv_data.sources.reading.tex_statements import MEND, OTHER, Statements, labels
from pv_data.sources.reading.tex_statements import claims as claims_of
from pv_data.sources.reading.unusable import Unusable

__all__ = ["parts"]

QUESTION = re.compile(r"prob|exer|quest|task|item|^ex")
"""An environment of a problem that may wait for its solution; a theorem's proof is right behind it."""


SOLVED = re.compile(r"\b(?:solutions?|proofs|answers)\b", re.IGNORECASE)

Made = dict[int, list[Part | Loose]]
"""By the place of the mark that it is made from."""


def parts(source: Source, names: Names, *, answers: bool = False, doubt: str = "") -> list[Part | Loose]:
    """The problems in order, and what cannot be given to one of them.

    Args:
        answers: the file is one of solutions, and its lists of Putnam labels are.
        doubt: why none of its solutions can be trusted.
    """
    try:
        return _Matcher(source, names, doubt, answers).parts()
    except RecursionError as error:
        raise Unusable("broken LaTeX", "nested too deep") from error


class _Matcher:
    def __init__(self, source: Source, names: Names, doubt: str, answers: bool) -> None:
        self.source, self.found = source, marks(source, names)
        known = (names_of(one.name, one.nodes) for one in self.found if one.kind == "problem")
        known = frozenset[str]().union(*known)
        self.statements = Statements(source=source, names=names, known=known, answers=answers)
        self.doubts = {at: why for at, why in enumerate(self._doubts(doubt)) if why}
        """By mark, why no solution there can be trusted."""
        self.made: Made = {}

    def parts(self) -> list[Part | Loose]:
        for at, mark in enumerate(self.found):
            if mark.kind == "problem":
                self.made[at] = self.statements.problem(mark, self.doubts.get(at, ""))
            elif mark.kind == "box":
                self.made[at] = self.statements.box(mark, self.doubts.get(at, ""))
        self._lists(items(self.found, answers=self.statements.answers))
        self._solutions()
        made = [one for at in sorted(self.made) for one in self.made[at]]
        return [one for part in made for one in (part, *(part.pieces() if isinstance(part, Part) else []))]

    def _doubts(self, doubt: str) -> list[str]:
        """What the headings over each mark and the words right before it announce."""
        path, made, last = list[Mark](), list[str](), ""
        headings = Counter(plain(one.name) for one in self.found if one.kind == "heading")
        first = next((one for one in self.found if one.kind not in ("heading", "words")), None)
        turned = (
            first is not None
            and first.kind == "solution"
            and not claims_of(first.node, self.statements.known)
        )
        for mark in self.found:
            if mark.kind == "heading":
                path = [*(one for one in path if one.level < mark.level), mark]
            over = next((one.name for one in path if doubtful_heading(one.name)), "")
            why = f"the heading {over!r} is above it" if over else ""
            before = last[-100:]
            if not why and mark.kind in ("solution", "item") and doubtful_heading(before):
                why = f"the words before it are {before!r}"
            if mark.kind == "words" and made and denied(mark.name):
                made[-1] = made[-1] or f"the words behind it are {mark.name[:60]!r}"
            if mark.kind == "words" and announced(mark.name):
                doubt = doubt or f"the words before it are {mark.name[-100:]!r}"
            solved = next((one.name for one in path[:-1] if SOLVED.search(one.name)), "")
            if not why and mark.kind == "problem" and _is_heading(mark) and solved:
                twice = headings[plain(mark.name)] > 1
                why = f"the heading {solved!r} is above it, and the problem is elsewhere" if twice else ""
            if (
                not why
                and turned
                and mark.kind == "solution"
                and not claims_of(mark.node, self.statements.known)
            ):
                why = "the file begins with a solution: each may be that of the problem behind it"
            made.append(doubt or mark.doubt or why)
            last = mark.name if mark.kind in ("words", "heading") else ""
        return made

    def _lists(self, listed: dict[int, Item]) -> None:
        """Problems first: a solution's problem may be behind it."""
        for at, item in listed.items():
            mark = self.found[at]
            if item.aside is not None:
                self.made[at] = [self.statements.loose(item.aside[1], mark.nodes, mark.at, item.aside[0])]
            elif not item.is_solution:
                self.made[at] = self.statements.problem(mark, self.doubts.get(at, ""), item.label)
                for one in self.made[at]:
                    if isinstance(one, Part):
                        one.label, one.closed = f"{item.over} {item.label}".strip(), True
        own: dict[str, Part] = {}
        for at, item in listed.items():
            if item.aside is not None or not item.is_solution:
                continue
            mark = self.found[at]
            of = self.made[item.of][0] if item.of is not None else own.get(item.label)
            if of is None:
                line = self.source.line(mark.at)
                of = own[item.label] = Part(label=item.label, text="", line=line, names=names_of(item.label))
                self.made[at] = [of]
            if isinstance(of, Part):
                body = text(mark.nodes)
                claims = {said_by_body(body)} - {""}
                why = self.doubts.get(at, "") or ("" if claims <= of.names else OTHER)
                line, other = self.source.line(mark.at), is_alternative(body[:60])
                loose = of.take(Solution(text=body, line=line, other=other), why)
                self.made[at] = [*self.made.get(at, []), *loose]
            else:
                self.made[at] = [
                    self.statements.loose(
                        "which is set aside", mark.nodes, mark.at, "solution without problem"
                    )
                ]

    def _solutions(self) -> None:
        """Give each environment of a solution to its problem."""
        drafts = [one for several in self.made.values() for one in several if isinstance(one, Part)]
        count = Counter(name for one in drafts for name in one.names)
        by_name = {name: one for one in drafts for name in one.names if count[name] == 1}
        waiting, near, answered = list[Part | Loose](), False, False
        for at, mark in enumerate(self.found):
            if mark.kind == "problem":
                one = self.made[at][0]
                # a heading ends nothing: the problems of several sections may have their solutions behind the last
                waiting, answered = [*([] if answered else waiting), one], False
                near = isinstance(one, Part) and not one.closed
            elif mark.kind == "solution":
                answered = True
                claims = claims_of(mark.node, count)
                last = waiting[-1] if near else None
                theorem = isinstance(last, Part) and mark.env == "proof" and not QUESTION.search(last.env)
                behind = last if len(waiting) == 1 or theorem else None
                named = [by_name.get(one) for one in claims]
                of = None
                if any(map(is_ref, claims)) or (
                    behind is None and all(_may_name(one, waiting) for one in claims)
                ):
                    of = named[0] if named and all(one is named[0] for one in named) else None
                if of is None and isinstance(behind, Part) and claims <= behind.names:
                    of = behind
                near = of is not None and of is behind
                if of is None:
                    self.made[at] = [self._nobodys(mark, waiting, claims)]
                    continue
                why = self.doubts.get(at, "")
                if of.names & labels(mark.nodes, "uses"):
                    why = r"its \uses has the label of the problem before it: it is another's proof"
                before = self.found[at - 1].name if self.found[at - 1].kind in ("words", "heading") else ""
                self.made[at] = of.take(self.statements.solution(mark.node, before), why)
            elif mark.kind not in ("words", "heading") or not is_one_solution(plain(mark.name)):
                near = False

    def _nobodys(self, mark: Mark, waiting: Sequence[Part | Loose], claims: frozenset[str]) -> Loose:
        if not waiting:
            reason, why = "solution without problem", "no problem is before it"
        elif len(waiting) > 1:
            reason, why = UNCLEAR, f"{len(waiting)} problems before it have none"
        elif NOBODYS in claims:
            reason, why = (
                UNCLEAR,
                "by its title or first words it is of a part or another statement, or no solution",
            )
        elif claims:
            reason, why = (
                UNCLEAR,
                f"it names {', '.join(sorted(claims))}, and that is not the problem before it",
            )
        else:
            reason, why = UNCLEAR, "something is between it and its problem"
        return self.statements.loose(f"{why}; {MEND}", mark.nodes, mark.at, reason)


def _is_heading(mark: Mark) -> bool:
    """Whether it is a heading, or the problem that a heading begins."""
    return mark.kind == "heading" or (mark.kind == "problem" and not mark.env)


def _may_name(said: str, waiting: Sequence[Part | Loose]) -> bool:
    """A number may be that of a second solution, or of another day's problem: it names one that waits, if all do."""
    own = [one.names if isinstance(one, Part) else frozenset[str]() for one in waiting]
    return not NUMBER.fullmatch(said) or (all(own) and any(said in one for one in own))
