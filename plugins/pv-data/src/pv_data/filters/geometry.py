"""`geometry`: the paper leaves geometry out. By subject where the source says it, else by words.

The word rule counts different words of geometry that no other subject uses in their plain sense. Measured precision and
recall: docs/sources.md.
"""

from __future__ import annotations

import re

from pv_data.records import Problem

__all__ = ["geometry", "words_of_geometry"]

SUBJECT = re.compile(r"\b(?:geometry|geometric|trigonometry)\b|几何", re.IGNORECASE)
OTHER = re.compile(r"\bcombinatori\w*", re.IGNORECASE)
"""`Combinatorial geometry` is combinatorics, as in OlympiadBench."""
ENOUGH = 2
"""Different words. One alone may stand in a problem of another subject (`a triangle of numbers`)."""
WORDS: dict[str, str] = {
    "triangle": r"\btriangles?\s+(?:(?=[$\\(])\$?\\?\(?\s*)?(?-i:(?:[A-Z] ?){3})(?![A-Za-z])|\\triangle\b|△",
    "quadrilateral": r"\b(?:quadrilateral|trapezoid|trapezium|parallelogram|rhombus)s?\b",
    "circle": r"\b(?:circles?|circumference)\b|\\odot\b",
    "circumcircle": r"\b(?:circum|in|ex)(?:circle|center|centre|radius|scribed)s?\b|\bcircumscribed\b",
    "orthocenter": r"\bortho(?:center|centre)\b|\bcentroid\b|\bnine-point\b|\bsymmedian\b",
    "angle": r"\\angle\b|∠|\b(?:acute|obtuse|right)[- ]angled?\b|\bangles?\b",
    "perpendicular": r"\bperpendiculars?\b|\\perp\b|\baltitudes?\b|\bfoot of\b",
    "parallel": r"\bparallel\b|\\parallel\b",
    "bisector": r"\bbisect(?:or|ors|s)?\b|\bmidpoints?\b|\bmedians?\b",
    "collinear": r"\b(?:collinear|concyclic|concurrent|cyclic quadrilateral)\b",
    "tangent": r"\btangent\s+(?:to|line|at)\b|\btangents\b|\btangency\b",
    "chord": r"\b(?:chord|diameter|secant|arc)s?\b",
    "segment": (
        r"\bsegments?\s+(?:(?=[$\\(])\$?\\?\(?\s*)?(?:\\overline\s*\{?)?(?-i:[A-Z] ?[A-Z])\b"
        r"|\\overline\s*\{\s*(?-i:[A-Z] ?[A-Z])\s*\}"
    ),
    "side": r"\b(?:sides?|lines?|rays?)\s+(?:(?=[$\\(])\$?\\?\(?\s*)?(?-i:[A-Z] ?[A-Z])\b",
}
PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in WORDS.items()}


def geometry(problem: Problem) -> tuple[str, str] | None:
    """Reason and detail, if it is a geometry problem."""
    if problem.subject:
        said = SUBJECT.search(problem.subject) and not OTHER.search(problem.subject)
        return ("geometry", f"its subject is {problem.subject[:100]}") if said else None
    found = words_of_geometry(problem.text)
    return ("geometry", f"it speaks of {', '.join(found)}") if len(found) >= ENOUGH else None


def words_of_geometry(text: str) -> list[str]:
    """Which kinds of words of geometry are in the text."""
    return [name for name, pattern in PATTERNS.items() if pattern.search(text)]
