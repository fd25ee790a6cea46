"""LaTeX tree of a file, by pylatexenc: what a node holds, and the names of problems and solutions."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

from pv_data.sources.reading.fields import LONGEST, checked
from pv_data.sources.reading.unusable import Unusable
from pv_judge.extras import needs
from pv_judge.rowfiles.files import opened

__all__ = [
    "LISTS",
    "NOBODYS",
    "NUMBER",
    "SECTIONS",
    "SKETCH",
    "environment",
    "is_one_solution",
    "is_ref",
    "names_of",
    "option",
    "parse",
    "plain",
    "putnam",
    "said_of",
    "text",
    "words",
    "written",
]


SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection")
LISTS = frozenset({"itemize", "enumerate", "description"})
PUTNAM = re.compile(r"(?:problem)?\W{0,3}([AB])\W{0,3}([1-6])\W{0,3}", re.IGNORECASE)
OPTION = re.compile(r"\[[^\[\]]{0,500}\]")
SILENT = frozenset(
    {"label", "vspace", "hspace", "vskip", "index", "includegraphics", "setcounter", "addtocounter"}
)
"""Macros whose arguments are not read."""
COMMAND = re.compile(r"\\label\s*\{[^{}]*\}|\\(?:[A-Za-z]+\*?|.)")

SIGN = re.compile(r"\\[A-Za-z]+")


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
    inside = [one for one in nodes if environment(one) == "document"]
    return list(inside[0].nodelist) if inside else list(nodes)


def environment(node: Any) -> str:
    """The name of an environment; empty for another node."""
    return getattr(node, "environmentname", None) or ""


def text(nodes: Sequence[Any]) -> str:
    """As it is written, without comments of its own and without `[...]` right behind `\\begin{...}`."""
    whole = written(nodes)
    return OPTION.sub("", whole, count=1).strip() if OPTION.match(whole) else whole.strip()


def option(node: Any) -> str:
    """What stands in `[...]` right behind the `\\begin{...}` of an environment."""
    arguments = node.nodeargd.argnlist if node.nodeargd and node.nodeargd.argnlist else []
    given = [one.latex_verbatim() for one in arguments if one is not None]
    found = OPTION.match(next((one for one in given if one.startswith("[")), written(node.nodelist)))
    return found[0][1:-1].strip() if found else ""


def putnam(node: Any) -> str:
    """`A1` for `\\item[A1]`, `\\item[A--1]` and `\\item[Problem A1]`."""
    argument = node.nodeargd.argnlist if getattr(node, "macroname", "") == "item" and node.nodeargd else []
    found = PUTNAM.fullmatch(argument[0].latex_verbatim()[1:-1].strip()) if argument and argument[0] else None
    return (found[1] + found[2]).upper() if found else ""


def words(nodes: Sequence[Any]) -> str:
    """Letters and digits that a reader sees, in small letters, with a blank between words; `formula` for signs only."""
    seen = [one for one in nodes if getattr(one, "macroname", "") not in SILENT]
    signs = any(map(_is_formula, seen))
    return plain(written(seen) + (" formula" if signs else ""))


def _is_formula(node: Any) -> bool:
    """Whether it has a formula, and no mere sign as `$\\star$`."""
    if type(node).__name__ == "LatexMathNode":
        return node.displaytype == "display" or not SIGN.fullmatch(written(node.nodelist).strip())
    arguments = node.nodeargd.argnlist if getattr(node, "nodeargd", None) else []
    inside = [*(arguments or []), *(getattr(node, "nodelist", None) or [])]
    return any(_is_formula(one) for one in inside if one is not None)


def plain(written: str) -> str:
    """The same of LaTeX as it is written."""
    return " ".join(re.findall(r"[^\W_]+", COMMAND.sub(" ", written))).casefold()


def written(nodes: Sequence[Any]) -> str:
    """LaTeX without comments of its own."""
    return "".join(one.latex_verbatim() for one in nodes if type(one).__name__ != "LatexCommentNode")


NOBODYS = "?"
"""What a title says that is of no problem as a whole: no problem has this name."""
REF = re.compile(r"\\\w*ref\*?\s*\{([^{}]*)\}")
KIND = re.compile(r"^(?:problem|exercise|question) (?=.)")
PUTNAM_NAME = re.compile(r"^([ab]) ([1-6])$")
NUMBER = re.compile(r"(?:[a-z] ?)?[0-9]+(?: ?[a-z])?")
ORDER = r"(?:first|second|third|fourth|fifth|alternative|alternate|another|official)"
ONE = re.compile(rf"(?:(?:{ORDER} )?(?:solution|proof|answer)(?: [0-9]{{1,2}}| [ivx]{{1,4}})?(?: |$))+")
OF = re.compile(rf"(?:{ORDER} )?(?:solution|proof|answer)s? (?:of|to|for)\b ?(?:the )?(.*)")
NUMBERED = re.compile(
    r"(?:.* (?:of|to|for) (?:the )?|(?:.* )?(?:problem|exercise|question|theorem|proposition|corollary|no|number) )"
    rf"({NUMBER.pattern})(?: .*)?"
)
"""A title that names a number, however it begins: `Sol. of 2`, `No. 2`."""
NOT_WHOLE = (
    "sketch(?:es)?|hints?|incorrect|wrong|false|attempts?|partial|outlines?|ideas?|remarks?|"
    "comments?|drafts?|bogus"
)
SKETCH = re.compile(rf"\b(?:{NOT_WHOLE})\b")
PARTIAL = re.compile(rf"\b(?:{NOT_WHOLE}|cases?|parts?|steps?|lemmas?|lemmata|claims?)\b")
HALF = re.compile(
    r"\b(?:incomplete|flawed|fake|failed|plan|subcases?|corollary|proposition|notes?|motivation|summary|necessity|"
    r"sufficiency|existence|uniqueness|converse|only if|(?:lower|upper) bound)\b"
)
"""The same where no problem has the whole title."""
BRACKETS = re.compile(r"(?:[\w ]+ (?:of|to|for) +)?\([^()]+\)(?: (?:of|in)\b.*)?")
"""A part or a formula: `(a)`, `Proof of (1)`."""
FORMULA = re.compile(r"\$|\\[(\[]")
FORMAT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|sl|tt|sc|up|normal)?|emph|bf|bfseries|it|itshape|rm|sf|sc|scshape|sl|tt|em|upshape)\b|"
    r"\\[^A-Za-z]|\\\w*ref\b\*?"
)
UNIT = re.compile(r"[0-9]*(?:pt|cm|mm|in|em|ex|bp|pc|plus|minus|fil{1,3})?")


def names_of(title: str, nodes: Sequence[Any] = ()) -> frozenset[str]:
    """All names of a problem: its title, and the labels of references to it.

    A label is the problem's where it stands in it directly, and not in a list, a formula or another environment. Of
    several only those before its first word are: the others may be of its parts.
    """
    at = [place for place, one in enumerate(nodes) if getattr(one, "macroname", "") == "label"]
    mine, since = list[int](), 0
    for one in at:
        if len(at) > 1 and plain((written if since else text)(nodes[since:one])):
            break
        mine.append(one)
        since = one
    labels = {_ref(nodes[one].nodeargd.argnlist[-1].latex_verbatim().strip("{}")) for one in mine}
    return frozenset((labels | {_name(title)}) - {""})


def said_of(title: str, known: Container[str]) -> str:
    """The name that a solution's title has for its problem; empty where it names none.

    Args:
        known: the names of all problems.
    """
    name, refs, said = _name(title), REF.findall(title), plain(title)
    bare = " ".join(REF.sub("", title).split())
    if any(PARTIAL.search(one) for one in (said, title.casefold())) or BRACKETS.fullmatch(bare):
        return NOBODYS
    if refs:
        return _ref(refs[0]) if len(refs) == 1 else NOBODYS
    if not title.strip() or _is_length(title):
        return ""
    if name in known:
        return name
    if found := OF.fullmatch(said):
        return _name(found[1]) or NOBODYS
    if not name or FORMULA.search(title) or HALF.search(said):
        return NOBODYS
    if found := NUMBERED.fullmatch(said):
        return _name(found[1])
    return name if NUMBER.fullmatch(name) else ""


def is_ref(said: str) -> bool:
    """Whether a solution names its problem by a `\\ref`."""
    return said.startswith("\\")


def is_one_solution(said: str) -> bool:
    """Whether words between a problem and its solution say no more than `Solution` or `Second proof`."""
    return ONE.fullmatch(said) is not None


def _ref(label: str) -> str:
    return f"\\ref{{{label.strip()}}}"


def _name(title: str) -> str:
    return PUTNAM_NAME.sub(r"\1\2", KIND.sub("", plain(title)))


def _is_length(title: str) -> bool:
    """What exam.cls has there, the height of the answer's room: `\\stretch{1}`, `3\\baselineskip`."""
    bare = FORMAT.sub("", title)
    return (
        "\\" in bare
        and not FORMULA.search(title)
        and all(UNIT.fullmatch(one) for one in plain(title).split())
    )
