r"""Solution matcher: which solution is of which problem; what the file leaves in doubt is `Loose` and gets no label.

A solution is a problem's if it ends the problem's environment, if it stands right behind the only problem that waits
for one, or if it names it. What stands behind a lemma, or behind several problems, may be another's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any

from pv_data.sources.reading.tex import (
    PLAIN,
    UNREAD,
    emphasised,
    environment,
    head,
    inside,
    label_of,
    level,
    macro,
    plain,
    text,
    words,
)
from pv_data.sources.reading.tex_lists import Item, items
from pv_data.sources.reading.tex_marks import Mark, Names, marks, opens_solution
from pv_data.sources.reading.tex_names import (
    NOBODYS,
    NUMBER,
    begins_solution,
    is_alternative,
    is_one_solution,
    is_ref,
    names_of,
    ref,
    said_by_title,
)
from pv_data.sources.reading.tex_openings import doubtful_heading, said_by_body
from pv_data.sources.reading.tex_parts import UNCLEAR, Loose, Part, Solution
from pv_data.sources.reading.tex_source import Source
from pv_data.sources.reading.unusable import Unusable

__all__ = ["parts"]

SHORTEST = 30
"""Letters of a problem in a file of solutions, which may have an answer in its place."""
MEND = (
    "put it right behind its problem or at the end of the problem's environment, or name the problem: "
    r"\begin{problem}[NAME], \begin{solution}[NAME]"
)
OFF = "a conditional may switch a part of it off"
OTHER = f"it names another problem or a part, or it is no full solution; {MEND}"
STATES = re.compile(r"\b(?:theorem|lemma|claim|proposition|corollary|fact|proof)\b")
PART = re.compile(r"part|sub")
"""An environment for the solutions of parts."""
WHOLE = re.compile(r"\b(?:solution|proof)\b")
QUESTION = re.compile(r"prob|exer|quest|task|item|^ex")
"""An environment of a problem that may wait for its solution; a theorem's proof is right behind it."""


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
        self.source, self.names, self.answers = source, names, answers
        self.found = marks(source, names)
        self.known = frozenset[str]().union(
            *(names_of(one.name, one.nodes) for one in self.found if one.kind == "problem")
        )
        self.doubts = {at: why for at, why in enumerate(self._doubts(doubt)) if why}
        """By mark, why no solution there can be trusted."""
        self.made: Made = {}

    def parts(self) -> list[Part | Loose]:
        for at, mark in enumerate(self.found):
            if mark.kind == "problem":
                self.made[at] = self._problem(at, mark)
            elif mark.kind == "box":
                self.made[at] = self._box(at, mark)
        self._lists(items(self.found, answers=self.answers))
        self._solutions()
        made = [one for at in sorted(self.made) for one in self.made[at]]
        return [one for part in made for one in (part, *(part.pieces() if isinstance(part, Part) else []))]

    def _doubts(self, doubt: str) -> list[str]:
        """What the headings over each mark and the words right before it announce."""
        path, made, last = list[Mark](), list[str](), ""
        for mark in self.found:
            if mark.kind == "heading":
                path = [*(one for one in path if one.level < mark.level), mark]
            over = next((one.name for one in path if doubtful_heading(one.name)), "")
            why = f"the heading {over!r} stands over it" if over else ""
            before = last[-100:]
            if not why and mark.kind in ("solution", "item") and doubtful_heading(before):
                why = f"the words before it are {before!r}"
            made.append(doubt or mark.doubt or why)
            last = mark.name if mark.kind in ("words", "heading") else ""
        return made

    def _loose(self, detail: str, nodes: Sequence[Any], at: int, reason: str = UNCLEAR) -> Loose:
        return Loose(reason=reason, detail=detail, text=text(nodes), line=self.source.line(at))

    def _solution(self, node: Any, before: str = "") -> Solution:
        body, said = inside(node), (*head(node), before)
        other = environment(node).startswith("alt") or any(map(is_alternative, (*said, body[:60])))
        return Solution(text=body, line=self.source.line(node.pos), other=other)

    def _problem(self, at: int, mark: Mark, label: str = "") -> list[Part | Loose]:
        """The statement, and the solutions at its end."""
        inner = [one for one in mark.nodes if environment(one) in self.names.solutions]
        rest = [one for one in mark.nodes if environment(one) not in self.names.solutions]
        if any(self._has_solution(one) for one in rest):
            why = f"within the statement; {MEND}"
            return [self._loose(why, rest, mark.at, "solution in problem")]
        if self.answers and mark.env == "question" and len(words(rest)) < SHORTEST:
            why = "the file is one of solutions, and this too short to be a problem"
            return [self._loose(why, rest, mark.at, "problem or solution")]
        made = Part(
            label=label,
            text=text(rest, titled=bool(mark.env)),
            line=self.source.line(mark.at),
            names=names_of(label or mark.name, mark.nodes),
            closed=bool(inner),
            env=mark.env,
            doubt=mark.doubt,
        )
        first = next((at for at, one in enumerate(mark.nodes) if opens_solution(one, self.names)), None)
        if first is None:
            return [made]
        states = any(environment(one) and environment(one) not in PLAIN for one in mark.nodes[:first])
        apart = [one for one in mark.nodes[first:] if environment(one) not in UNREAD | self.names.solutions]
        parted = words(apart)
        if not inner:
            return self._told(made, mark, first, states, self.doubts.get(at, ""))
        parted = parted if not is_one_solution(parted) else ""
        made.text = made.text if parted else text(mark.nodes[:first], titled=bool(mark.env))
        loose = list[Part | Loose]()
        for one in inner:
            why = self.doubts.get(at, "") or (OFF if self.source.may_be_off([one]) else "")
            if states or parted or not _claims(one, self.known) <= made.names:
                why = f"another statement or more text stands in the same problem, or {OTHER}"
            before = mark.nodes[: mark.nodes.index(one)]
            said = next((plain(emphasised(node)) for node in reversed(before) if emphasised(node)), "")
            loose += made.take(self._solution(one, said), why)
        return [made, *loose]

    def _told(self, made: Part, mark: Mark, first: int, states: bool, why: str) -> list[Part | Loose]:
        r"""A statement, `\textbf{Solution.}`, and the rest its solution."""
        made.text, made.closed = text(mark.nodes[:first], titled=bool(mark.env)), True
        told = [plain(emphasised(one)) for one in mark.nodes[first:]]
        told = [one for one in told if begins_solution(one)]
        own = first + (macro(mark.nodes[first]) in self.names.solutions)
        body = Solution(text=text(mark.nodes[own:]), line=self.source.line(mark.nodes[first].pos))
        stated = " ".join(plain(emphasised(one)) for one in mark.nodes[:first])
        within = mark.node is not None and environment(mark.node) and told[:1] == ["proof"]
        if states or within or STATES.search(stated) or len(set(told)) < len(told):
            why = "it may be that of a part, or of another statement in the same problem"
        elif told and not any(WHOLE.search(one) for one in told):
            why = "it may be an answer without a proof"
        elif not {said_by_body(body.text)} <= {"", *made.names}:
            why = OTHER
        return [made, *made.take(body, why)]

    def _box(self, at: int, mark: Mark) -> list[Part | Loose]:
        """The box, and the rest of its section, unless another problem is in it."""
        box, rest = mark.nodes[0], mark.nodes[1:]
        made = Part(
            label=mark.name,
            text=inside(box),
            line=self.source.line(mark.at),
            names=names_of(mark.name, box.nodelist),
        )
        if not words([one for one in rest if environment(one) not in UNREAD and level(one) is None]):
            return [made]
        why = self.doubts.get(at, "")
        if mark.shared or any(
            environment(one) == environment(box) and head(one) == head(box) for one in rest
        ):
            why = f"the section {mark.name!r} has another problem: give each a section of its own"
        solution = Solution(text=text(rest), line=self.source.line(rest[0].pos))
        return [made, *made.take(solution, why or (OFF if self.source.may_be_off(mark.nodes) else ""))]

    def _lists(self, listed: dict[int, Item]) -> None:
        """Problems first: a solution's problem may be behind it."""
        for at, item in listed.items():
            mark = self.found[at]
            if item.aside is not None:
                self.made[at] = [self._loose(item.aside[1], mark.nodes, mark.at, item.aside[0])]
            elif not item.is_solution:
                self.made[at] = self._problem(at, mark, item.label)
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
                    self._loose("which is set aside", mark.nodes, mark.at, "solution without problem")
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
                claims = _claims(mark.node, count)
                behind = (
                    waiting[-1]
                    if near and (len(waiting) == 1 or self._is_its_proof(at, waiting[-1]))
                    else None
                )
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
                    self.made[at] = [self._nobodys(mark, waiting)]
                    continue
                why = self.doubts.get(at, "")
                if of.names & _labels(mark.nodes, "uses"):
                    why = r"its \uses has the label of the problem before it: it is another's proof"
                before = self.found[at - 1].name if self.found[at - 1].kind in ("words", "heading") else ""
                self.made[at] = of.take(self._solution(mark.node, before), why)
            elif mark.kind not in ("words", "heading") or not is_one_solution(plain(mark.name)):
                near = False

    def _is_its_proof(self, at: int, last: Part | Loose) -> bool:
        """Whether a `proof` is right behind a theorem, and no other solution behind it: earlier ones may have none."""
        following = self.found[at + 1].kind if at + 1 < len(self.found) else ""
        is_theorem = isinstance(last, Part) and QUESTION.search(last.env) is None
        return is_theorem and self.found[at].env == "proof" and following != "solution"

    def _nobodys(self, mark: Mark, waiting: Sequence[Part | Loose]) -> Loose:
        if not waiting:
            reason, why = "solution without problem", "none stands before it"
        elif len(waiting) > 1:
            reason, why = UNCLEAR, f"{len(waiting)} problems before it have none"
        else:
            reason, why = (
                UNCLEAR,
                "it names another or a part, or something stands between it and its problem",
            )
        return self._loose(f"{why}; {MEND}", mark.nodes, mark.at, reason)

    def _has_solution(self, node: Any) -> bool:
        """Whether an environment of a solution is somewhere in it."""
        own = [] if environment(node) in UNREAD else getattr(node, "nodelist", None) or []
        return any(environment(one) in self.names.solutions or self._has_solution(one) for one in own)


def _claims(node: Any, known: Container[str]) -> frozenset[str]:
    """The names that an environment of a solution has for its problem, by its titles, `\\proves` and first words."""
    proves = _labels(node.nodelist, "proves")
    said = {said_by_title(one, known) for one in head(node) if one}
    said |= {said_by_body(inside(node)), *(proves if len(proves) < 2 else [NOBODYS])}
    said |= {NOBODYS} if PART.search(environment(node)) else set()
    return frozenset(said - {""})


def _labels(nodes: Sequence[Any], name: str) -> frozenset[str]:
    """The names of the labels that `\\proves` or `\\uses` has."""
    return frozenset(ref(one) for node in nodes if macro(node) == name for one in label_of(node).split(","))


def _may_name(said: str, waiting: Sequence[Part | Loose]) -> bool:
    """A number may be that of a second solution, or of another day's problem: it names one that waits, if all do."""
    own = [one.names if isinstance(one, Part) else frozenset[str]() for one in waiting]
    return not NUMBER.fullmatch(said) or (all(own) and any(said in one for one in own))
