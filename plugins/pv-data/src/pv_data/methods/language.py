"""Language check of a model's answer, by its script and its commonest words.

A cheap check of one question only: did the model write in the language that was asked for?
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["LANGUAGES", "language_fault", "language_of", "prose_of", "script_of"]


class Language(NamedTuple):
    """A language that `translate` knows."""

    name: str
    """In English, as the model is told."""
    script: str
    """A key of `SCRIPTS`."""
    words: frozenset[str] = frozenset()
    """Its commonest short words, where other languages share its script."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LANGUAGES = {
    "en": Language("English", "latin", _words("the of and to is that we it for then with this are be which")),
    "de": Language(
        "German", "latin", _words("der die das und ist ein eine dass wir sei für gilt mit nicht sind")
    ),
    "fr": Language("French", "latin", _words("le la les et est un une que nous on pour donc des dans soit")),
    "es": Language("Spanish", "latin", _words("el la los y es un una que para con por se las entonces del")),
    "it": Language("Italian", "latin", _words("il la che e è un una per con si di sono quindi gli della")),
    "pt": Language("Portuguese", "latin", _words("o a os e é um uma que para com não se então temos seja")),
    "zh": Language("Chinese", "han"),
    "ja": Language("Japanese", "kana"),
    "ko": Language("Korean", "hangul"),
    "ru": Language("Russian", "cyrillic"),
}
"""By ISO 639-1 code."""
SCRIPTS = {
    "latin": re.compile(r"[A-Za-zÀ-ɏ]"),
    "han": re.compile(r"[㐀-鿿]"),
    "kana": re.compile(r"[぀-ヿ]"),
    "hangul": re.compile(r"[가-힯ᄀ-ᇿ]"),
    "cyrillic": re.compile(r"[Ѐ-ӿ]"),
}
# In `\\[2pt]` no formula begins. None holds the beginning of another one, or each would be read to the end of the text.
INLINE, DISPLAY = (rf"(?<!\\)\\\{a}(?:(?!(?<!\\)\\\{a}).)*?\\\{b}" for a, b in ("()", "[]"))
FORMULA = re.compile(rf"\$\$.*?\$\$|\$[^$]*\$|{DISPLAY}|{INLINE}|\\[A-Za-z]+(?:\{{[^{{}}]*\}})?", re.DOTALL)
WORD = re.compile(r"[^\W\d_]+")
ENOUGH_LETTERS = 40
"""A text with fewer letters outside of its formulas is in no particular language."""
CHARACTERS_READ = 20_000


def prose_of(text: str) -> str:
    """The beginning of the text without its formulas."""
    return FORMULA.sub(" ", text[:CHARACTERS_READ])


def script_of(text: str) -> str | None:
    """The script of most of the prose, None where there is too little of it.

    Letters stand in formulas too, so a sign of another script counts for three Latin ones; Japanese has kana among its
    Chinese signs.
    """
    prose = prose_of(text)
    counts = {
        name: len(pattern.findall(prose)) * (1 if name == "latin" else 3) for name, pattern in SCRIPTS.items()
    }
    if counts["kana"] * 5 > counts["han"] and counts["kana"]:
        counts["kana"] += counts.pop("han")
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= ENOUGH_LETTERS else None


def language_of(text: str) -> str | None:
    """The code of a text's language, as far as `LANGUAGES` has it; None where too little of it can be told."""
    script = script_of(text)
    codes = [code for code, language in LANGUAGES.items() if language.script == script]
    if len(codes) < 2:
        return codes[0] if codes else None
    words = WORD.findall(prose_of(text).lower())
    counts = {code: sum(word in LANGUAGES[code].words for word in words) for code in codes}
    first, second = sorted(counts, key=lambda code: -counts[code])[:2]
    return first if counts[first] > counts[second] else None


def language_fault(text: str, code: str) -> str | None:
    """Why a text is not in the language `code`, or None: it is, or has too few words to tell."""
    wanted = LANGUAGES[code]
    script = script_of(text)
    if script is not None and script != wanted.script:
        return f"its script is {script}, that of {wanted.name} is {wanted.script}"
    found = language_of(text)
    if found is None or found == code:
        return None
    return f"its words are those of {LANGUAGES[found].name}, not of {wanted.name}"
