r"""Features of a problem that survive rewording: content words, numbers and formulas, without names of variables.

A feature begins with its kind:

- `w`: a word, by its first letters and without its ending; a letter of a script without spaces. Words that any problem
  has (`prove`, `each`), months and days are left out.
- `p`: two words in a row, in any order; two such letters in a row; a name, which is a word with a capital letter inside
  a sentence. These count little.
- `n`: a number. Words for numbers count as numbers, in English and Chinese.
- `f`: a formula, or four tokens of it in a row. Variables are numbered in the order in which they come, all numbers are
  one sign, and products, powers and fractions are written without theirs: `\frac{a}{2}`, `a/2` and `x/3` are one.

The weights and the threshold were chosen on half of the labelled rewordings (docs/concepts/duplicates.md).
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pv_data.duplicates.shingles import LONGEST, SPACING, UNSPACED, WRAPPER, normalised
from pv_data.duplicates.words import EMPTY, digits, of_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["THRESHOLD", "WEIGHTS", "blind", "features"]

THRESHOLD = 0.42
"""Similarity from which two problems are taken for one, unless another is given."""
WEIGHTS = (1.0, 2.0, 0.125)
"""Of words, formulas and numbers of one digit; of larger numbers; of pairs and names. Sums of eighths are exact."""
LITTLE = 2.0
"""Weight of a text's features up to which they do not tell what it asks."""
GRAM = 4
"""Tokens of a part of a formula."""

ENVIRONMENT = re.compile(r"\\(?:begin|end) ?\{[A-Za-z]{1,20}\*?\}|\\\$|\$(?=\d[\d,.]{0,15} {1,3}[A-Za-z]{2})")
"""What is no part of a formula; a dollar before an amount (`$4 each`) opens none."""
SHORT_FRACTION = re.compile(r"(\\[dt]?frac *\d)(?=\d)")
HYPHEN = re.compile(r"(?<=[a-z]{2})-(?=[a-z]{2})")
"""Between words, where it is no minus."""
NO_NUMBER = re.compile("三(?=角)|千(?=[米克])|百(?=分之)")
"""Letters of Chinese words that name no number."""
NOTE = re.compile(r"\([A-Z][^()]{40,}\)")
"""A note of a sentence or more, such as the definition of a word, is not compared: many problems have the same."""
NAME = re.compile(r"(?<=[a-z,;0-9)] )[A-Z][a-z]+")
DELIMITER = re.compile(r"(\$\$?|\\[()\[\]])")
TOKEN = re.compile(
    rf"\\[A-Za-z]+|\d+(?:,\d{{3}})+(?!\d)|\d+(?:\.\d+)?|[{UNSPACED}]|[^\W\d_{UNSPACED}]+|[<>]=?|[+=!≤≥≠∈→≡∠△⊥√∑∫-]"
)
SIGNS = {
    **dict.fromkeys(("<=", "le", "leq", "leqslant"), "≤"),
    **dict.fromkeys((">=", "ge", "geq", "geqslant"), "≥"),
    **dict.fromkeys(("ne", "neq"), "≠"),
    **dict.fromkeys(("to", "rightarrow", "longrightarrow", "mapsto"), "→"),
    **dict.fromkeys(("angle", "measuredangle"), "∠"),
    **dict.fromkeys(("pmod", "bmod"), "mod"),
    **{"lt": "<", "gt": ">", "in": "∈", "equiv": "≡", "sqrt": "√", "sum": "∑", "int": "∫"},
    **{"triangle": "△", "perp": "⊥", "log": "ln"},
}
"""One spelling for the commands and signs of formulas."""
UNSAID_COMMANDS = """
    frac dfrac tfrac over cdot times ast div ldots cdots dots colon lvert rvert vert mid cup limits displaylimits
"""
UNSAID = frozenset(UNSAID_COMMANDS.split())
"""Commands that are left out."""
FUNCTION_NAMES = """
    sin cos tan cot arcsin arccos arctan exp log ln lim min max gcd lcm mod inf sup det rank tr dim ker deg
"""
FUNCTIONS = frozenset(FUNCTION_NAMES.split())
"""Words of formulas that are no products of variables."""
GREEK = re.compile(
    "(?i:var)?(?i:alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|"
    "chi|psi|omega|ell)"
)


def features(text: str) -> dict[str, str]:
    """Feature to how the text spells it, in the order of the text; of its first 20,000 characters.

    A text that has next to none (`"???"`, `"Prove number 1."`) is a feature of its own, as written.
    """
    text = text[:LONGEST]
    found: dict[str, str] = {}
    names = frozenset(NAME.findall(text))
    for run in _runs(NOTE.sub(" ", text)) or _runs(text):
        for feature, shown in _of_formula(run) if isinstance(run, list) else of_words(run, names):
            found.setdefault(feature, shown)
    if sum(WEIGHTS[_weight(one)] for one in found) <= LITTLE:
        found["w" + (" ".join(normalised(text)) or "".join(text.split()))] = text
    return found


def blind(text: str) -> NDArray[np.int64]:
    """The features' hashes, sorted; the last two bits are the place of the weight in `WEIGHTS`. Never empty."""
    import numpy as np

    hashes = (zlib.crc32(one.encode("utf-8", "replace")) << 2 | _weight(one) for one in features(text))
    return np.unique(np.fromiter(hashes, dtype=np.int64))


def _weight(feature: str) -> int:
    return 2 if feature[0] == "p" else int(feature[0] == "n" and len(feature) > 2)


Formula = list[tuple[str, str]]
"""Kind (`v` variable, `n` number, `o` another sign) and text of each token."""


def _runs(text: str) -> list[Formula | tuple[str, ...]]:
    """Formulas, and runs of words between them. A number among words is a formula of one token."""
    text = WRAPPER.sub(" ", SPACING.sub(" ", ENVIRONMENT.sub(" ", text)))
    text = unicodedata.normalize("NFKC", SHORT_FRACTION.sub(r"\1 ", text.replace("\u2212", "-")))
    text = HYPHEN.sub(" ", NO_NUMBER.sub("", text[:LONGEST]))
    runs: list[Formula | tuple[str, ...]] = []
    for inside, part in _parts(text):
        formula: Formula = []
        words: list[str] = []
        for token in [*TOKEN.findall(part), ""]:
            made = list(_formula_tokens(token, inside=inside)) if token else []
            if words and (made or not token):
                runs.append(tuple(words))
                words = []
            if formula and not made and token[:1] != "\\":
                runs.append(formula)
                formula = []
            formula += made
            if token and not made and token[0] != "\\":
                words.append(token)
    return runs


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Whether a part stands between the signs of a formula, and the part."""
    inside, parts = False, DELIMITER.split(text)
    odd = sum(one in ("$", "$$") for one in parts) % 2
    for part in parts:
        if part in ("$", "$$"):
            inside = not inside
        elif part in (r"\(", r"\["):
            inside = True
        elif part in (r"\)", r"\]"):
            inside = False
        else:
            yield inside and not odd, part


def _formula_tokens(token: str, *, inside: bool) -> Iterator[tuple[str, str]]:
    """What a token is in a formula; nothing if it is a word."""
    if token[0] == "\\":
        name = token[1:]
        if GREEK.fullmatch(name) or len(name) == 1:
            yield "v", name
        elif name not in UNSAID:
            yield "o", SIGNS.get(name, name)
    elif token[0].isdigit():
        yield "n", digits(token)
    elif not token[0].isalpha() or (inside and token in FUNCTIONS):
        yield "o", SIGNS.get(token, token)
    elif len(token) == 1 and "\u0370" <= token < "\u0400":
        yield "v", token
    elif token.isascii() and (
        (inside and len(token) <= 4 and (len(token) == 1 or token not in EMPTY))
        or (len(token) == 1 and token not in "aAI")
        or (len(token) <= 4 and token.isupper() and len(token) > 1)
    ):
        yield from (("v", letter) for letter in token)


def _of_formula(formula: Formula) -> Iterator[tuple[str, str]]:
    for kind, text in formula:
        if kind == "n" and text not in ("0", "1"):
            yield "n" + text, text
    if len(formula) > 1 and any(kind != "n" for kind, _ in formula):
        yield "f" + _blinded(formula), " ".join(text for _, text in formula)
        for at in range(len(formula) - GRAM + 1):
            part = formula[at : at + GRAM]
            yield "f" + _blinded(part), " ".join(text for _, text in part)


def _blinded(formula: Formula) -> str:
    names: dict[str, str] = {}
    return " ".join(
        names.setdefault(text, f"v{len(names)}") if kind == "v" else "0" if kind == "n" else text
        for kind, text in formula
    )
