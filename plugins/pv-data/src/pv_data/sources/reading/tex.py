"""The tree of a LaTeX file, by pylatexenc, and what is asked of its nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pv_data.sources.reading.fields import LONGEST, checked
from pv_data.sources.reading.unusable import Unusable
from pv_judge.rowfiles.files import opened
from pv_rl.extras import needs

__all__ = [
    "LISTS",
    "SECTIONS",
    "environment",
    "option",
    "parse",
    "plain",
    "putnam",
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
