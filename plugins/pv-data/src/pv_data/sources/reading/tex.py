"""LaTeX nodes: what an environment holds, and what a reader sees of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pv_data.sources.reading.tex_source import GONE

__all__ = [
    "LISTS",
    "MATH",
    "PLAIN",
    "SECTIONS",
    "UNREAD",
    "arguments",
    "content",
    "emphasised",
    "environment",
    "head",
    "inside",
    "label_of",
    "level",
    "macro",
    "option",
    "plain",
    "text",
    "title",
    "words",
    "written",
]

SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection")
LISTS = frozenset({"itemize", "enumerate", "description"})
UNREAD = frozenset(
    {
        *("comment", "verbatim", "lstlisting", "minted", "asy", "asydef", "tikzpicture", "picture"),
        *("figure", "wrapfigure", "hint", "hints"),
    }
)
LAYOUT = frozenset(
    {
        *("document", "center", "flushleft", "flushright", "minipage", "multicols", "samepage", "small"),
        *("large", "quote", "quotation", "framed", "mdframed", "tcolorbox", "table", "tabular"),
        *("tabbing", "parts", "questions", "choices", "oneparchoices", "checkboxes"),
    }
)
MATH = frozenset(
    {
        *("math", "displaymath", "equation", "align", "alignat", "flalign", "gather", "multline"),
        *("eqnarray", "aligned", "alignedat", "gathered", "split", "cases", "array", "subequations"),
        *("smallmatrix", "matrix", "pmatrix", "bmatrix", "vmatrix"),
    }
)
PLAIN = UNREAD | LISTS | LAYOUT | MATH
"""Environments that state nothing of their own; another one may be a lemma, and what follows its proof."""
SILENT = frozenset(
    {
        *("label", "vspace", "hspace", "vskip", "index", "includegraphics", "setcounter", "addtocounter"),
        *("uses", "lean", "discussion", "proves"),
    }
)
"""Macros whose arguments are not read."""
FONTS = frozenset({*("textbf", "textit", "textsc", "emph", "underline", "paragraph", "subparagraph")})
FONT_SWITCHES = frozenset({*("bf", "bfseries", "it", "itshape", "sc", "scshape", "em")})
HEAD = re.compile(r"(?:[ \t]{0,9}\[([^\[\]]{0,500})\])?(?:\{((?:[^{}]|\{[^{}]{0,99}\}){0,200})\})?")
"""Titles right behind `\\begin{...}`, in brackets and in braces."""
BEGIN = re.compile(r"\\begin\s*\{[^{}]*\}")
BLUEPRINT = re.compile(
    r"\\(?:uses|lean|discussion|proves)\s{0,9}\{[^{}]*\}[ \t]*\n?|\\(?:leanok|notready|mathlibok)\b\s?"
)
COMMAND = re.compile(r"\\(?:begin|end|label|vspace|hspace)\*?\s*\{[^{}]*\}|\\(?:[A-Za-z]+\*?|.)", re.DOTALL)
SIGN = re.compile(r"\\[A-Za-z]+")


def environment(node: Any) -> str:
    """The name of an environment, in small letters and without a star; empty for another node."""
    return (getattr(node, "environmentname", None) or "").rstrip("*").casefold()


def macro(node: Any) -> str:
    """The name of a macro; empty for another node."""
    return getattr(node, "macroname", None) or ""


def arguments(node: Any) -> list[str]:
    """What is in the braces and brackets of a macro."""
    given = node.nodeargd.argnlist if getattr(node, "nodeargd", None) else None
    return [one.latex_verbatim().replace(GONE, "").strip() for one in given or [] if one is not None]


def label_of(node: Any) -> str:
    """The last argument of `\\label`, `\\proves`, `\\uses`, without its braces."""
    given = arguments(node)
    return given[-1].strip("{}").strip() if given else ""


def written(nodes: Sequence[Any]) -> str:
    """LaTeX as it is written, without what is not typeset."""
    return "".join(one.latex_verbatim() for one in nodes).replace(GONE, "")


def content(node: Any) -> str:
    """What is between `\\begin{...}` and `\\end{...}`."""
    whole = written([node])
    return BEGIN.sub("", whole, count=1).rpartition("\\end")[0]


def head(node: Any) -> tuple[str, str]:
    """What is in `[...]` and in `{...}` right behind the `\\begin{...}` of an environment."""
    found = HEAD.match(content(node))
    return ((found[1] or "").strip(), (found[2] or "").strip()) if found else ("", "")


def inside(node: Any) -> str:
    """The content of an environment without its titles and without the marks of blueprints."""
    return BLUEPRINT.sub("", HEAD.sub("", content(node), count=1)).strip()


def text(nodes: Sequence[Any], *, titled: bool = False) -> str:
    """As it is written, without the marks of blueprints.

    Args:
        titled: it is the content of an environment; titles at its begin are left out.
    """
    whole = written(nodes)
    return BLUEPRINT.sub("", HEAD.sub("", whole, count=1) if titled else whole).strip()


def level(node: Any) -> int | None:
    """Of a heading, the highest the smallest."""
    return SECTIONS.index(macro(node)) if macro(node) in SECTIONS else None


def title(node: Any) -> str:
    """Of a heading; `\\part` has none, which exam.cls has for its items."""
    given = arguments(node)
    return given[-1][1:-1].strip()[:100] if given and given[-1].startswith("{") else ""


def emphasised(node: Any) -> str:
    r"""What is set in bold or italics, or is a paragraph's heading: `\textbf{Solution.}`, `{\bf Proof}`."""
    if macro(node) in FONTS and (given := arguments(node)):
        return given[-1].strip("{}")
    own = node.nodelist if type(node).__name__ == "LatexGroupNode" else []
    return written(own[1:]) if own and macro(own[0]) in FONT_SWITCHES else ""


def option(node: Any) -> str:
    """The label of `\\item[...]`."""
    given = arguments(node)
    return given[0][1:-1].strip() if given and given[0].startswith("[") else ""


def words(nodes: Sequence[Any]) -> str:
    """Letters and digits that a reader sees, in small letters, with a blank between words; `formula` for signs only."""
    seen = [one for one in nodes if macro(one) not in SILENT]
    return plain(written(seen) + (" formula" if any(map(_is_formula, seen)) else ""))


def _is_formula(node: Any) -> bool:
    """Whether it has a formula, and no mere sign as `$\\star$`."""
    if type(node).__name__ == "LatexMathNode":
        return node.displaytype == "display" or not SIGN.fullmatch(written(node.nodelist).strip())
    if environment(node) in MATH:
        return True
    given = node.nodeargd.argnlist if getattr(node, "nodeargd", None) else []
    inside = [*(given or []), *(getattr(node, "nodelist", None) or [])]
    return any(_is_formula(one) for one in inside if one is not None)


def plain(latex: str) -> str:
    """The same of LaTeX as it is written."""
    return " ".join(re.findall(r"[^\W_]+", COMMAND.sub(" ", latex))).casefold()
