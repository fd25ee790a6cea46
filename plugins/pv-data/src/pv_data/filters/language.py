"""`language`: the language that the source says, else by py3langid on the text without its LaTeX.

A text of fewer than `ENOUGH` letters, or one of which the model is not sure, has no language, and passes: formulas
alone are read in every country.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Any

from pv_data.methods.language import DISPLAY, INLINE
from pv_data.records import Problem
from pv_rl.extras import needs

__all__ = ["ENOUGH", "language", "language_of", "words_only"]

ENOUGH = 25
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
    if letters < ENOUGH:
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
