r"""LaTeX preprocessor: finds what of a file is typeset, and has pylatexenc parse that.

Comments, `\iffalse ... \fi`, `comment` environments, the preamble and what follows `\end{document}` are replaced by as
many `GONE` characters, which are white space to the parser and which `tex.written` drops, so that positions stay.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pv_data.sources.reading.fields import LONGEST, checked
from pv_data.sources.reading.unusable import Unusable
from pv_judge.extras import needs
from pv_judge.rowfiles.files import opened

__all__ = ["GONE", "Source", "parse"]

GONE = "\x1f"
CODE = r"comment|[vV]erbatim\*?|lstlisting|minted|filecontents\*?|asy|asydef"
"""Environments in which `%` and a backslash are text."""
TOKEN = (
    r"%[^\n]*(?:\n(?![ \t]*\n)[ \t]*)?"
    r"|\\verb\*?(?P<bar>[^A-Za-z\s*])[^\n]{{0,300}}?(?P=bar)"
    r"|\\begin\s{{0,9}}\{{(?P<code>{})\}}|\\(?P<edge>begin|end)\s{{0,9}}\{{document\}}"
    r"|\\(?:newif|let|[egx]?def|(?:re|provide)?(?:new)?command\*?\{{?)\s{{0,9}}\\[A-Za-z@]+"
    r"|\\(?P<word>if[A-Za-z@]*|(?:else|fi|endinput)(?![A-Za-z@]))|\\(?:[A-Za-z@]+|.)"
)
SWITCHED_OFF = re.compile(
    r"\\exclude(?:comment|version)\s{0,9}\{([^{}]{1,60})\}|\\let\s{0,9}\\([A-Za-z]{1,60})\s{0,9}=?\s{0,9}\\comment\b|"
    r"\\(?:[Rr]e)?[Nn]ew(?:Environ|environment)\*?\s{0,9}\{([^{}]{1,60})\}(?:\[[^\[\]]{0,60}\]){0,2}\s{0,9}\{\s{0,9}"
    r"(?:\\comment|\\iffalse|\\setbox|\\begin\{comment\}|\})"
)
"""Definitions of environments that are not printed."""
DEFINED = re.compile(
    r"\\(?:newtheorem\*?|declaretheorem|(?:re)?newenvironment\*?|(?:New|Renew)\w{0,9}Environment|newtcolorbox|"
    r"renewcommand)\s{0,9}(?:\[[^\[\]]{0,200}\])?\s{0,9}\{\\?([A-Za-z]{1,60}?)(?:name)?\*?\}([^\n]{0,200})"
)
"""Environments with what they print, and `\\proofname`."""
CONDITIONALS = frozenset(
    {
        *("if", "ifcat", "ifx", "ifnum", "ifdim", "ifodd", "ifcase", "ifvmode", "ifhmode", "ifmmode"),
        *("ifinner", "ifvoid", "ifhbox", "ifvbox", "ifeof", "iftrue", "iffalse", "ifdefined", "ifcsname"),
        *("iffontchar", "ifincsname"),
    }
)
NEW_IF = re.compile(r"\\newif\s{0,9}\\(if[A-Za-z@]+)")
NO_CONDITIONAL = re.compile(r"iff(?:if)?|if(?:then|bool|toggle|str|blank|not|undef|num|dim|cs|def).*")
"""Macros that take what they switch as arguments; `ifnum`, `ifdim`, `ifdefined` and `ifcsname` are found before."""
DIGITS = re.compile(r"\s?([0-9])([0-9]?)")
SHOWS_SOLUTIONS = re.compile(
    r"\\if(?:@|show|print|with|include|display|has|full)*"
    r"(?:sol(?:n|ution)?s?|ans(?:wer)?s?|answerkey|proofs?|teachers?|instructors?)(?:version)?(?![A-Za-z@])",
    re.IGNORECASE,
)
"""Such a conditional switches right solutions on and off."""
TITLE = re.compile(r"\\title\s{0,9}(?:\[[^\[\]]{0,200}\])?\s{0,9}\{((?:[^{}]|\{[^{}]{0,100}\}){0,300})")


@dataclass(frozen=True, kw_only=True)
class Source:
    """The tree of a file."""

    nodes: list[Any]
    title: str
    author: str
    doubts: list[tuple[int, int]]
    """Begin and end of text that a conditional may switch off."""
    defined: dict[str, str]
    """By environment, what its definition prints, and other code of it."""
    lines: list[int]
    """Position of each end of a line."""

    def line(self, at: int) -> int:
        """Number of the line of a position, from 1."""
        return bisect_right(self.lines, at) + 1

    def may_be_off(self, nodes: Sequence[Any]) -> bool:
        """Whether a conditional may switch a part of nodes that follow each other off."""
        if not nodes:
            return False
        start, end = nodes[0].pos, nodes[-1].pos + nodes[-1].len
        place = bisect_left(self.doubts, (end, 0))
        return any(since < end and until > start for since, until in self.doubts[max(place - 1, 0) : place])


def parse(path: Path) -> Source:
    """What is typeset of a file.

    Raises:
        Unusable: it is broken, too long or too deep, or no UTF-8.
        DataError: it cannot be read.
    """
    with needs("pylatexenc", "a .tex file", "pip install pylatexenc"):
        from pylatexenc.latexwalker import LatexWalker, LatexWalkerError
    with opened(path) as file:
        raw = file.read(4 * LONGEST + 1)
    try:
        text = checked(raw.decode("utf-8-sig"), "file").replace(GONE, " ").replace("\r\n", "\n")
        live, scan = _typeset(text)
        nodes = LatexWalker(live, latex_context=_macros(), tolerant_parsing=False).get_latex_nodes()[0]
    except UnicodeDecodeError as error:
        raise Unusable("not UTF-8", str(error)[:200]) from error
    except LatexWalkerError as error:
        raise Unusable("broken LaTeX", str(error)[:300]) from error
    except RecursionError as error:
        raise Unusable("broken LaTeX", "nested too deep") from error
    except (ValueError, IndexError, TypeError, AttributeError, KeyError) as error:
        # its parser stumbles over some broken files instead of saying what is wrong
        raise Unusable("broken LaTeX", f"{type(error).__name__}: {error}"[:300]) from error
    title, author = (
        re.search(TITLE.pattern.replace("title", name, 1), _without(text, scan.gone))
        for name in ("title", "author")
    )
    return Source(
        nodes=list(nodes),
        title=title[1] if title else "",
        author=author[1] if author else "",
        doubts=scan.outermost(),
        defined=dict(DEFINED.findall(_without(text, scan.gone))),
        lines=[at for at, one in enumerate(text) if one == "\n"],
    )


@cache
def _macros() -> Any:
    """What pylatexenc knows of macros, with those of Lean blueprints."""
    from pylatexenc.latexwalker import get_default_latex_context_db
    from pylatexenc.macrospec import std_macro

    context = get_default_latex_context_db()
    marks = [std_macro(name, False, 1) for name in ("proves", "uses", "lean", "discussion")]
    context.add_context_category("blueprint", prepend=True, macros=marks)
    return context


def _typeset(text: str) -> tuple[str, _Scan]:
    """The text with `GONE` for what is not typeset."""
    try:
        scan = _Scan(text)
    except Unusable:  # `\ifunknown` may be a macro that has no `\fi`
        scan = _Scan(text, every=False)
    switched = {name for one in SWITCHED_OFF.findall(_without(text, scan.gone)) for name in one if name}
    if switched:
        scan = _Scan(text, switched=frozenset(switched), every=scan.every)
    return _without(text, [*scan.gone, (0, scan.begin), (scan.end, len(text))]), scan


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    kept, at = list[str](), 0
    for start, end in sorted(spans):
        if end > at:
            kept += [text[at : max(start, at)], GONE * (end - max(start, at))]
            at = end
    return "".join([*kept, text[at:]])


class _Scan:
    """One pass over the tokens that switch text off."""

    def __init__(self, text: str, *, switched: frozenset[str] = frozenset(), every: bool = True) -> None:
        r"""Args:
        switched: environments that are not typeset.
        every: whether each `\if...` that is not known is a conditional, and no macro.
        """
        self.gone: list[tuple[int, int]] = []
        self.doubts: list[tuple[int, int]] = []
        self.begin, self.end, self.every = 0, len(text), every
        self._text, self._ended = text, False
        self._open: list[tuple[int, bool | None, int]] = []
        """Of each conditional: where it begins; whether it holds, None if nobody knows; where text ends that is off."""
        self._names = CONDITIONALS | frozenset(NEW_IF.findall(text))
        token = re.compile(TOKEN.format("|".join([CODE, *map(re.escape, switched)])), re.DOTALL)
        at = 0
        while found := token.search(text, at):
            at = self._after(found, switched)
        if self._open:
            raise self._broken(self._open[-1][0], "has no end")
        if self.begin and not self._ended:
            raise self._broken(text.rindex("\\", 0, self.begin), "has no end")

    def outermost(self) -> list[tuple[int, int]]:
        """Doubts in order, without those within others."""
        kept = list[tuple[int, int]]()
        for one in sorted(self.doubts):
            if not kept or one[0] >= kept[-1][1]:
                kept.append(one)
        return kept

    def _broken(self, at: int, why: str) -> Unusable:
        line = self._text.count("\n", 0, at) + 1
        return Unusable("broken LaTeX", f"{self._text[at : at + 20].split()[0]} in line {line} {why}")

    def _after(self, found: re.Match[str], switched: frozenset[str]) -> int:
        """Where to search on."""
        start, end = found.span()
        if found[0].startswith("%"):
            self.gone.append((start, end))
        elif name := found["code"]:
            close = self._text.find(f"\\end{{{name}}}", end)
            if close < 0:
                raise self._broken(start, "has no end")
            end = close + len(name) + 6
            if name == "comment" or name in switched:
                self.gone.append((start, end))
        elif found["edge"] == "begin" and not self.begin:
            self.begin = end
        elif not self._open and (found["edge"] == "end" or found["word"] == "endinput"):
            self.end, self._ended = start, True
            return len(self._text)
        elif word := found["word"]:
            self._switch(word, start, end)
        return end

    def _switch(self, word: str, start: int, end: int) -> None:
        if word.startswith("if"):
            if word in self._names or (self.every and not NO_CONDITIONAL.fullmatch(word)):
                known = {"iffalse": False, "iftrue": True}.get(word)
                if word == "if" and (digits := DIGITS.match(self._text, end)):
                    known = (
                        True if digits[1] == digits[2] else (False if digits[1] == "0" or digits[2] else None)
                    )
                self.gone += [(start, end)] if known else []
                self._open.append((start, known, start))
        elif not self._open:
            raise self._broken(start, "has no conditional")
        elif word == "else":
            begin, known, _ = self._open[-1]
            self.gone += [(begin, end)] if known is False else []
            self._open[-1] = (begin, None if known is None else not known, start if known is not None else -1)
        elif word == "fi":
            begin, known, since = self._open.pop()
            if known is not None:
                self.gone.append((start if known else since, end))
            elif since < 0 or not SHOWS_SOLUTIONS.match(self._text, begin):
                self.doubts.append((begin, end))
