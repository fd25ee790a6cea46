"""Names of problems in a LaTeX file, and the problem that a solution names."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Any

from pv_data.sources.reading.tex import plain, text, written

__all__ = ["NOBODYS", "NUMBER", "SKETCH", "is_one_solution", "is_ref", "names_of", "said_of"]

NOBODYS = "?"
"""What a title says that is of no problem as a whole: no problem has this name."""
REF = re.compile(r"\\\w*ref\*?\s*\{([^{}]*)\}")
KIND = re.compile(r"^(?:problem|exercise|question) (?=.)")
PUTNAM = re.compile(r"^([ab]) ([1-6])$")
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
    return PUTNAM.sub(r"\1\2", KIND.sub("", plain(title)))


def _is_length(title: str) -> bool:
    """What exam.cls has there, the height of the answer's room: `\\stretch{1}`, `3\\baselineskip`."""
    bare = FORMAT.sub("", title)
    return (
        "\\" in bare
        and not FORMULA.search(title)
        and all(UNIT.fullmatch(one) for one in plain(title).split())
    )
