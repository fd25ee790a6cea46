"""Parts of a LaTeX file: problems with their solutions, and what is set aside."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_data.sources.reading.tex_openings import shortcoming

__all__ = ["UNCLEAR", "Loose", "Part", "Solution"]

UNCLEAR = "unclear solution"


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A text, and its place in the file."""

    text: str
    line: int
    other: bool = False
    """It says that it is one of several."""


@dataclass(frozen=True, kw_only=True)
class Loose:
    """What is set aside: a problem or a solution."""

    reason: str
    detail: str
    text: str
    line: int


@dataclass(kw_only=True)
class Part:
    """A problem with its solutions; in a file of solutions, a label with its solutions and no text."""

    label: str
    """`A1` to `B6`, or a section's title; empty where it has none."""
    text: str
    line: int
    names: frozenset[str] = frozenset()
    """What a solution may call it."""
    solutions: list[Solution] = field(default_factory=list)
    closed: bool = False
    """Its environment ends with its solutions: one behind it has to name it."""
    env: str = ""
    doubt: str = ""
    """Why it may not be typeset."""

    def take(self, solution: Solution, doubt: str = "") -> list[Part | Loose]:
        """Keep a solution, or give it back if there is a doubt, or its own words are that it is none."""
        why = doubt or self.doubt or shortcoming(self.text, solution.text)
        if why:
            return [Loose(reason=UNCLEAR, detail=why, text=solution.text, line=solution.line)]
        self.solutions.append(solution)
        return []

    def pieces(self) -> list[Loose]:
        """Give several solutions back that may be the pieces of one, or one of them a lost problem's."""
        if sum(not one.other for one in self.solutions) < 2:
            return []
        why = "several solutions follow each other: give each a title, such as `Second solution`"
        several, self.solutions = self.solutions, []
        return [Loose(reason=UNCLEAR, detail=why, text=one.text, line=one.line) for one in several]
