"""LaTeX renderer: a text with formulas as HTML whose formulas are MathML, which browsers show without a script.

The result has the tags `math`, its parts and `code`, whatever the text contains: latex2mathml itself copies `<script>`
from a formula into its output, so its tree is rebuilt from the tags and attributes that are listed here. A formula that
cannot be converted is shown as it was written. Characters that are not printable, such as bidirectional controls, are
shown as escapes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from pv_judge.pages.text import visible

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["formulas", "to_html"]

LONGEST_FORMULA = 2_000
"""Characters; the converter needs at most quadratic time."""
MOST_FORMULAS = 100_000
"""Characters of the formulas of a text that are converted, about 20 times as many of HTML. The rest is shown as is."""
ENVIRONMENTS = ("equation", "align", "alignat", "gather", "multline", "eqnarray", "displaymath", "math")
DELIMITER = re.compile(
    r"\\\\|\\\$|\$\$|\$|\\\(|\\\)|\\\[|\\\]|\\(?:begin|end)\{(?:"
    + "|".join(ENVIRONMENTS)
    + r")\*?\}|\n[ \t]*\n"
)
CLOSES = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
DEFINES = re.compile(r"\\(?:(?:re|provide)?newcommand|[gex]?def|let|DeclareMathOperator)(?![A-Za-z])")
"""Macros are not expanded: a formula of 2,000 characters would give 100 times as many."""
CLEANED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\\label\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])"), ""),
    (re.compile(r"\\(?:begin|end)\{(?:equation|displaymath|math)\*?\}"), ""),
    (re.compile(r"\\begin\{(?:alignat|alignedat)\*?\}(?:\{[0-9]{1,2}\})?"), r"\\begin{align*}"),
    (
        re.compile(
            r"\\(begin|end)\{(?:align|aligned|alignat|alignedat|gather|gathered|multline|eqnarray)\*?\}"
        ),
        r"\\\1{align*}",
    ),
    (re.compile(r"\\\\\[-?[0-9.]{1,8} ?[a-z]{2}\]"), r"\\\\ "),
    (re.compile(r"(\\(?:left|right))[ \n]+(?=\\)"), r"\1"),
    (re.compile(r"\\tag(?=\*?\{)"), r"\\qquad\\tag"),
    (re.compile(r"\\[bB]igg?[lrm](?=\\)"), ""),
)
"""What the converter does not know, as what it knows. It would number each `align` from 1; a proof does not."""

TAGS = re.compile(
    r"m(?:ath|row|i|o|n|s|text|space|frac|sqrt|root|style|padded|phantom|sub|sup|subsup|under|over|underover|"
    r"multiscripts|prescripts|table|tr|td|enclose)"
)
ATTRIBUTES = re.compile(
    r"display|displaystyle|scriptlevel|stretchy|fence|form|separator|symmetric|largeop|movablelimits|accent|accentunder|"
    r"lspace|rspace|minsize|maxsize|linethickness|width|height|depth|voffset|columnalign|columnlines|rowlines|"
    r"columnspacing|rowspacing|mathvariant|notation"
)
"""No colours: a proof that writes white on white would hide a step."""
VALUE = re.compile(r"(?:-0?\.[0-9]{1,4}|[0-9]{0,2}(?:\.[0-9]{1,4})?)[a-z%]{0,2}|[a-z-]{1,20}")
"""A word of an attribute. Lengths are above -1 and below 100, so that a formula does not cover the text beside it."""
ENTITY = re.compile(r"&#x([0-9A-Fa-f]{4,6});")


def to_html(text: str) -> str:
    """HTML of a text: formulas as MathML, all else as it is written, line breaks included (`white-space: pre-wrap`).

    Example: `a $x<1$` is `a <math ...><mrow><mi>x</mi><mo>&lt;</mo><mn>1</mn></mrow></math>`.
    """
    shown = visible(text)
    made, at, left = list[str](), 0, MOST_FORMULAS
    for start, end, inner, display in formulas(shown):
        made.append(escape(shown[at:start]))
        left -= end - start
        converted = _converted(inner, display) if left >= 0 else None
        made.append(converted or f"<code>{escape(shown[start:end])}</code>")
        at = end
    return "".join(made) + escape(shown[at:])


def formulas(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """The formulas of a text, in order: start and end with the delimiters, what is inside, and whether it is displayed.

    `$...$`, `$$...$$`, `\\(...\\)`, `\\[...\\]` and the environments of displays. A formula ends before a blank line at
    the latest. Prices are no formulas: a `$` before a digit closes none, nor one behind a space where none follows the
    first.
    """
    found = [(one.start(), one.end(), one.group()) for one in DELIMITER.finditer(text)]
    places = defaultdict[str, list[int]](list)
    for number, (_, _, token) in enumerate(found):
        places["\n" if token[0] == "\n" else token].append(number)
    number = 0
    while number < len(found):
        start, inside, token = found[number]
        environment = token[7:-1] if token.startswith(r"\begin") else ""
        close = rf"\end{{{environment}}}" if environment else CLOSES.get(token)
        last = _next(places[close], number) if close else None
        if last is None or ((paragraph := _next(places["\n"], number)) is not None and paragraph < last):
            number += 1
            continue
        end = found[last][1]
        inner = text[inside : found[last][0]]
        price = text[end : end + 1].isdigit() or (inner[-1:].isspace() and not inner[:1].isspace())
        if not inner.strip() or (token == "$" and price):
            number += 1
            continue
        yield start, end, text[start:end] if environment else inner, token not in ("$", r"\(")
        number = last + 1


def _next(places: list[int], number: int) -> int | None:
    at = bisect_left(places, number + 1)
    return places[at] if at < len(places) else None


@lru_cache(maxsize=4096)
def _converted(latex: str, display: bool) -> str | None:
    """MathML; None for a formula that the converter does not know, or that defines macros."""
    from xml.etree.ElementTree import tostring

    from latex2mathml.converter import Converter

    if len(latex) > LONGEST_FORMULA or DEFINES.search(latex):
        return None
    for pattern, known in CLEANED:
        latex = pattern.sub(known, latex)
    try:
        made = _rebuilt(Converter(display="block" if display else "inline").convert_to_element(latex))
        return tostring(made, encoding="unicode", short_empty_elements=False)
    except Exception:  # noqa: BLE001  the library raises IndexError, KeyError and more on formulas that are malformed
        return None


def _rebuilt(given: Element) -> Element:
    from xml.etree.ElementTree import Element

    tag = given.tag if TAGS.fullmatch(given.tag) else "mrow"
    kept = {
        name: value
        for name, value in given.attrib.items()
        if ATTRIBUTES.fullmatch(name) and all(map(VALUE.fullmatch, value.split(" ")))
    }
    made = Element(tag, kept)
    made.text = ENTITY.sub(lambda one: visible(chr(min(int(one[1], 16), 0x10FFFF))), given.text or "")
    made.extend(_rebuilt(child) for child in given)
    return made
