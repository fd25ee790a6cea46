"""Text normalisation: what a loop may vary from round to round without being less of a loop.

Lower case, one space for white space, compatibility forms and look-alikes as the plain letter, and nothing for what
cannot be seen. `Folded.span` leads back to the original, so that evidence is a span of it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import ne

from pv_rl.hookspecs import Span
from pv_rules.tandem import Tandem

__all__ = ["UNSEEN", "Folded", "folded"]

# Cyrillic and Greek letters that look like Latin ones. Greek ones that formulas use stay themselves.
LOOK_ALIKES = dict(
    zip(
        "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
        "aeopcyxijshdqwabekmhopctyxijsabezhikmnoptyxo",
        strict=True,
    )
)
UNSEEN = (
    "[\xad\u0300-\u036f\u061c\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff"
    "\ufe00-\ufe0f\ufe20-\ufe2f\ufeff\ufff9-\ufffb\U000e0001-\U000e01ef]"
)
"""Of a regular expression: characters that folding leaves out, such as joiners and combining marks."""
# Where `str.lower` is not all of it, compatibility forms aside.
DISGUISE = re.compile(rf"{UNSEEN}|[{''.join(LOOK_ALIKES)}]")
NUMBER, ZEROS = re.compile(r"[0-9]+"), re.compile(r"00+")
MOST_KEPT = 10_000  # letters
DIGITS = bytes.maketrans(b"123456789", b"000000000")


class Folded:
    """A text without its disguises."""

    def __init__(self, original: str) -> None:
        self.original = original
        if original.isascii() or (
            unicodedata.is_normalized("NFKC", original) and not DISGUISE.search(original)
        ):
            self._fold: Callable[[str], str] = str.lower
            plain = original.lower()
        else:
            self._fold = lambda letter: PLAIN[ord(letter)]
            plain = original.translate(PLAIN)
        self.text = " ".join(plain.split())

    def span(self, start: int, end: int) -> Span:
        """Where in the original `text[start:end]` is."""
        places = self._places
        return places[start], places[end] if end < len(places) else len(self.original)

    def cut(self, repeat: Tandem) -> str:
        """What the original has where `text` has a repeat."""
        start, end = self.span(repeat.start, repeat.end)
        return self.original[start:end]

    @cached_property
    def pattern(self) -> str:
        """`text` with `0` for each number."""
        digits = self.text.encode("utf-8", "surrogatepass").translate(DIGITS)  # quicker than `NUMBER.sub`
        return ZEROS.sub("0", digits.decode("utf-8", "surrogatepass"))

    def changed_numbers(self, repeat: Tandem) -> int:
        """How many numbers of a repeat of `pattern` are not those of the round before."""
        numbers, first, last = self._numbers, self._number(repeat.start), self._number(repeat.end)
        in_round = self._number(repeat.start + repeat.period) - first
        return sum(map(ne, numbers[first : last - in_round], numbers[first + in_round : last]))

    def pattern_span(self, repeat: Tandem) -> Span:
        """Where in the original a repeat of `pattern` is."""
        start, end = (at + self._digits[self._number(at)] for at in (repeat.start, repeat.end))
        return self.span(start, end)

    def _number(self, at: int) -> int:
        """How many numbers begin before `pattern[at]`."""
        return bisect_left(self._marks, at)

    @cached_property
    def _numbers(self) -> list[str]:
        return NUMBER.findall(self.text)

    @cached_property
    def _digits(self) -> list[int]:
        """By number: how many digits before it `pattern` leaves out."""
        return list(accumulate((len(number) - 1 for number in self._numbers), initial=0))

    @cached_property
    def _marks(self) -> list[int]:
        return [match.start() for match in re.finditer("0", self.pattern)]

    @cached_property
    def _places(self) -> list[int]:
        places, before = [], " "  # white space at the start is left out
        for at, letter in enumerate(self.original):
            for one in self._fold(letter):
                one = " " if one.isspace() else one
                if not one == before == " ":
                    places.append(at)
                before = one
        return places


class _Plain(dict[int, str]):
    """By code point: the letter without its disguise. Filled as letters occur, up to a bound."""

    def __missing__(self, point: int) -> str:
        letter = chr(point)
        forms = unicodedata.normalize("NFKD", LOOK_ALIKES.get(letter, letter)).lower()
        kept = (one for one in forms if unicodedata.category(one) not in ("Mn", "Me", "Cf"))
        plain = "".join(str(unicodedata.decimal(one, one)) for one in kept)
        if len(self) < MOST_KEPT:
            self[point] = plain
        return plain


PLAIN = _Plain()


@lru_cache(maxsize=8)
def folded(text: str) -> Folded:
    """`text` folded; remembered, since several rules ask."""
    return Folded(text)
