"""What a problem is called in a LaTeX file, and which problem a solution says it is of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pv_data.sources.reading.tex import plain, written

__all__ = ["is_one_solution", "names_of", "said_of"]

LABEL = re.compile(r"\\label\s*\{([^{}]*)\}")
REF = re.compile(r"\\\w*ref\*?\s*\{([^{}]*)\}")
OF = re.compile(r"(?:.* )?(?:of|to|for) (?:the )?(.*)")
KIND = re.compile(r"^(?:problem|exercise|question|theorem|no) (?=.)")
PUTNAM = re.compile(r"^([ab]) ([1-6])$")
NUMBER = re.compile(r"(?:[a-z] ?)?[0-9]+(?: ?[a-z])?")
ORDER = r"(?:first|second|third|fourth|fifth|alternative|alternate|another|official)"
ONE = re.compile(rf"(?:(?:{ORDER} )?(?:solution|proof|answer)(?: [0-9]{{1,2}}| [ivx]{{1,4}})?(?: |$))+")


def names_of(title: str, nodes: Sequence[Any] = ()) -> frozenset[str]:
    """All names of a problem: its title, and the labels of references to it."""
    labels = {f"ref {one.strip()}" for one in LABEL.findall(written(nodes))}
    return frozenset(labels | {_name(title)} - {""})


def said_of(title: str) -> tuple[str, bool]:
    """The name that a solution's title has for its problem, and whether it surely names one."""
    if found := REF.search(title):
        return f"ref {found[1].strip()}", True
    name = _name(title)
    if found := OF.fullmatch(name):
        return _name(found[1]), True
    return name, NUMBER.fullmatch(name) is not None


def is_one_solution(said: str) -> bool:
    """Whether words between a problem and its solution say no more than `Solution` or `Second proof`."""
    return ONE.fullmatch(said) is not None


def _name(title: str) -> str:
    return PUTNAM.sub(r"\1\2", KIND.sub("", plain(title)))
