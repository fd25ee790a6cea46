"""Statements of a LaTeX file, each with the solutions that are in it: an environment, an item, a section or a box."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
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
from pv_data.sources.reading.tex_marks import Mark, Names, opens_solution
from pv_data.sources.reading.tex_names import (
    NOBODYS,
    begins_solution,
    is_alternative,
    is_one_solution,
    names_of,
    ref,
    said_by_title,
)
from pv_data.sources.reading.tex_openings import said_by_body
from pv_data.sources.reading.tex_parts import UNCLEAR, Loose, Part, Solution
from pv_data.sources.reading.tex_source import Source

__all__ = ["MEND", "OTHER", "Statements", "claims", "labels"]

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


@dataclass(frozen=True, kw_only=True)
class Statements:
    """Reads what a mark holds."""

    source: Source
    names: Names
    known: frozenset[str]
    """The names of all problems."""
    answers: bool
    """The file is one of solutions."""

    def loose(self, detail: str, nodes: Sequence[Any], at: int, reason: str = UNCLEAR) -> Loose:
        return Loose(reason=reason, detail=detail, text=text(nodes), line=self.source.line(at))

    def solution(self, node: Any, before: str = "") -> Solution:
        body, said = inside(node), (*head(node), before)
        other = environment(node).startswith("alt") or any(map(is_alternative, (*said, body[:60])))
        return Solution(text=body, line=self.source.line(node.pos), other=other)

    def problem(self, mark: Mark, doubt: str, label: str = "") -> list[Part | Loose]:
        """The statement, and the solutions at its end."""
        inner = [one for one in mark.nodes if environment(one) in self.names.solutions]
        rest = [one for one in mark.nodes if environment(one) not in self.names.solutions]
        if any(self._has_solution(one) for one in rest):
            why = f"within the statement; {MEND}"
            return [self.loose(why, rest, mark.at, "solution in problem")]
        nested = any(environment(one) in self.names.problems for one in rest)
        made = Part(
            label=label,
            text=text(rest, titled=bool(mark.env)),
            line=self.source.line(mark.at),
            names=names_of(label or mark.name, mark.nodes),
            closed=bool(inner),
            env=mark.env,
            doubt=mark.doubt or ("another problem is in it" if nested else ""),
        )
        first = next((at for at, one in enumerate(mark.nodes) if opens_solution(one, self.names)), None)
        if first is None:
            return [made]
        begin = mark.nodes[first]
        if (
            self.answers
            and mark.env in ("question", "")
            and "proof" in (environment(begin), plain(emphasised(begin)))
        ):
            why = "the file is one of solutions: what is before the proof may be a part of the solution"
            return [self.loose(why, mark.nodes, mark.at, "problem or solution")]
        states = any(environment(one) and environment(one) not in PLAIN for one in mark.nodes[:first])
        apart = [one for one in mark.nodes[first:] if environment(one) not in UNREAD | self.names.solutions]
        parted = words(apart)
        if not inner:
            return self._told(made, mark, first, states, doubt)
        parted = parted if not is_one_solution(parted) else ""
        made.text = made.text if parted else text(mark.nodes[:first], titled=bool(mark.env))
        loose = list[Part | Loose]()
        for one in inner:
            why = doubt
            if states or parted or not claims(one, self.known) <= made.names:
                why = f"another statement or more text is in the same problem, or {OTHER}"
            before = mark.nodes[: mark.nodes.index(one)]
            said = next((plain(emphasised(node)) for node in reversed(before) if emphasised(node)), "")
            loose += made.take(self.solution(one, said), why)
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

    def box(self, mark: Mark, doubt: str) -> list[Part | Loose]:
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
        why = doubt
        if mark.shared or any(
            environment(one) == environment(box) and head(one) == head(box) for one in rest
        ):
            why = f"the section {mark.name!r} has another problem: give each a section of its own"
        solution = Solution(text=text(rest), line=self.source.line(rest[0].pos))
        return [made, *made.take(solution, why or (OFF if self.source.may_be_off(mark.nodes) else ""))]

    def _has_solution(self, node: Any) -> bool:
        """Whether an environment of a solution is somewhere in it."""
        own = [] if environment(node) in UNREAD else getattr(node, "nodelist", None) or []
        return any(environment(one) in self.names.solutions or self._has_solution(one) for one in own)


def claims(node: Any, known: Container[str]) -> frozenset[str]:
    """The names that an environment of a solution has for its problem, by its titles, `\\proves` and first words."""
    proves = labels(node.nodelist, "proves")
    said = {said_by_title(one, known) for one in head(node) if one}
    said |= {said_by_body(inside(node)), *(proves if len(proves) < 2 else [NOBODYS])}
    said |= {NOBODYS} if PART.search(environment(node)) else set()
    return frozenset(said - {""})


def labels(nodes: Sequence[Any], name: str) -> frozenset[str]:
    """The names of the labels that `\\proves` or `\\uses` has."""
    return frozenset(ref(one) for node in nodes if macro(node) == name for one in label_of(node).split(","))
