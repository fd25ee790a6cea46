"""Filters of problems and proofs: each is a function that gives a reason to reject a row, or None.

`geometry`: the paper leaves geometry out. The subject decides where the source gives one, else words: different words
of geometry that no other subject uses in their plain sense. Measured precision and recall: docs/guides/sources.md.

`language`: the language that the source gives, else py3langid on the text without its LaTeX. A text of fewer than
`ENOUGH_LETTERS` letters, or one of which the model is not sure, has no language, and passes: formulas alone are read
in every country.

`length`: too short or too long, in characters or in estimated tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import cache
from typing import Any, Literal

from pv_data.methods.language import DISPLAY, INLINE
from pv_data.records import Problem
from pv_judge.extras import needs
from pv_rl.errors import ConfigError

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "ENOUGH_LETTERS",
    "geometry",
    "language",
    "language_of",
    "length",
    "words_of_geometry",
    "words_only",
]


SUBJECT = re.compile(r"\b(?:geometry|geometric|trigonometry)\b|几何", re.IGNORECASE)
OTHER = re.compile(r"\bcombinatori\w*", re.IGNORECASE)
"""`Combinatorial geometry` is combinatorics, as in OlympiadBench."""
ENOUGH_WORDS = 2
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
    return ("geometry", f"it speaks of {', '.join(found)}") if len(found) >= ENOUGH_WORDS else None


def words_of_geometry(text: str) -> list[str]:
    """Which kinds of words of geometry are in the text."""
    return [name for name, pattern in PATTERNS.items() if pattern.search(text)]


ENOUGH_LETTERS = 25
"""Letters. A letter of Chinese, Japanese or Korean counts for three."""
SURE = 0.9
READ = 4000
"""Characters of a text that are looked at."""
CANDIDATES = (
    *("ar", "bg", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi", "hr", "hu", "id"),
    *(
        "it",
        "ja",
        "ko",
        "nl",
        "no",
        "pl",
        "pt",
        "ro",
        "ru",
        "sk",
        "sl",
        "sr",
        "sv",
        "th",
        "tr",
        "uk",
        "vi",
        "zh",
    ),
)
"""ISO 639-1. Fewer languages, fewer mistakes on short texts; a text in another language is taken for one of these."""
MATH = re.compile(rf"\$\$[^$]*\$\$|\$[^$]*\$|{INLINE}|{DISPLAY}", re.DOTALL)
COMMAND = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+\*?|\\.|[{}$&^_~]")
WIDE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
CODE = re.compile(r"[a-z]{2}")


def language(problem: Problem, keep: Collection[str]) -> tuple[str, str] | None:
    """Reason and detail, if the problem is in a language that is not kept; all are, if `keep` names none."""
    if not keep:
        return None
    said = problem.language.strip().lower().replace("_", "-").partition("-")[0]
    found = said if CODE.fullmatch(said) else language_of(problem.text)
    if not found or found in keep:
        return None
    how = "as its source says" if found == said else "by its letters"
    return "language", f"{found} {how}; kept are {', '.join(sorted(keep))}"


def language_of(text: str) -> str:
    """ISO 639-1 code; empty where that cannot be said."""
    plain = words_only(text[:READ])
    letters = sum(map(str.isalpha, plain)) + 2 * len(WIDE.findall(plain))
    if letters < ENOUGH_LETTERS:
        return ""
    code, probability = _model().classify(plain)
    return code if probability >= SURE else ""


def words_only(text: str) -> str:
    """The text without formulas and commands; what stands in the braces of `\\textbf{...}` stays."""
    return " ".join(COMMAND.sub(" ", MATH.sub(" ", text)).split())


@cache
def _model() -> Any:
    """Three seconds on two cores, once."""
    with needs("py3langid", "the language filter", "pip install py3langid, or set filters.languages=[]"):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    model.set_languages(list(CANDIDATES))
    return model


CHARACTERS_PER_TOKEN = 2.5
"""Of mathematics in English with LaTeX. An estimate, no tokenizer is loaded: SmolLM2's makes a token of 2.2 characters
(Open Proof Corpus), 2.5 (OlympiadBench), 2.6 (GSM8K)."""


def length(
    text: str, low: int, high: int, *, unit: Literal["characters", "tokens"] = "characters"
) -> tuple[str, str] | None:
    """Reason and detail, if the text has fewer than `low` or more than `high` of the unit.

    Raises:
        ConfigError: bounds or a unit that cannot be.
    """
    if not 0 <= low <= high or unit not in ("characters", "tokens"):
        raise ConfigError(
            f"length from {low} to {high} {unit}; it is 0 <= low <= high, in characters or tokens"
        )
    size = len(text) if unit == "characters" else math.ceil(len(text) / CHARACTERS_PER_TOKEN)
    if low <= size <= high:
        return None
    return "too short" if size < low else "too long", f"{size} {unit}; {low} to {high} are taken"
