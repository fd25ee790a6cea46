"""Shingles of a problem's text: runs of tokens, after spelling without meaning is removed."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LONGEST", "SHINGLE", "SPACING", "UNSPACED", "WRAPPER", "normalised", "shingles"]

SHINGLE = 3
"""Tokens of a shingle."""
LONGEST = 20_000
"""Characters that are compared; a problem is seldom longer than 3,000."""
SPACING = re.compile(
    r"\\(?:left|right|big|Big|bigg|Bigg|displaystyle|textstyle|limits|quad|qquad|hspace|vspace|noindent|par|,|;|!|:| )"
    r"(?![A-Za-z])"
)
WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|emph|mathrm|mathbf|mathbb|mathcal|mathit|operatorname|mbox|begin|end)(?![A-Za-z])\*?"
)
ONE_SPELLING = {
    r"\leq": r"\le",
    r"\geq": r"\ge",
    r"\neq": r"\ne",
    r"\leqslant": r"\le",
    r"\geqslant": r"\ge",
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\ldots": "",
    r"\cdots": "",
    r"\dots": "",
    r"\rightarrow": r"\to",
    r"\longrightarrow": r"\to",
    r"\colon": "",
    r"\times": r"\cdot",
    r"\lvert": "",
    r"\rvert": "",
    r"\mid": "",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "→": r"\to",
    "∈": r"\in",
    "ℤ": "z",
    "ℝ": "r",
    "·": r"\cdot",
    "×": r"\cdot",
}
UNSPACED = (
    "\u0e00-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua980-\ua9df"  # Thai, Lao, Tibetan, Burmese, Khmer, Javanese
    "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"  # Han, Yi
    "\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff"  # kana, bopomofo
)
"""Scripts without spaces between words: each letter is a token, or a whole clause would be one."""
# A word, a letter of such a script, a number, a command, or one sign that means something. The rest (`$`, braces,
# brackets, `^`, `_`) goes.
TOKEN = re.compile(rf"\\[A-Za-z]+|\d+|(?=[^\W\d_])[{UNSPACED}]|[^\W\d_{UNSPACED}]+|[+\-*/=<>%!≤≥≠→∈·×]")


def normalised(text: str) -> list[str]:
    """The tokens of a text."""
    # the spelling of commands first: NFKC and case folding would change `\\Big`
    text = WRAPPER.sub(" ", SPACING.sub(" ", text[:LONGEST])).replace("−", "-")
    tokens = TOKEN.findall(unicodedata.normalize("NFKC", text))
    same = (ONE_SPELLING.get(token, token) for token in tokens)
    return [token.casefold() if not token.startswith("\\") else token for token in same if token]


def shingles(text: str) -> NDArray[np.int64]:
    """Sorted hashes of the different runs of `SHINGLE` tokens; of a shorter text, of the whole; never empty.

    Their last two bits are 0: all weigh the same.
    """
    import zlib

    import numpy as np

    # signs of any text are compared where it has no token
    tokens = normalised(text) or ["".join(text.split())[:LONGEST]]
    runs = {" ".join(tokens[at : at + SHINGLE]) for at in range(max(1, len(tokens) - SHINGLE + 1))}
    return np.unique(
        np.array([zlib.crc32(run.encode("utf-8", "replace")) << 2 for run in runs], dtype=np.int64)
    )
