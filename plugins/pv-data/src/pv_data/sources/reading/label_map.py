"""Label map: which values of a column mean right, wrong, or no label. A value that is not in it is never guessed."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pv_data.sources.reading.fields import short
from pv_data.sources.reading.unusable import Unusable
from pv_rl.errors import ConfigError

__all__ = ["WORDS", "LabelMap"]

WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "1", "correct", "right", "yes"), True),
    **dict.fromkeys(("false", "0", "incorrect", "wrong", "no"), False),
}
"""Words for right and wrong, in label columns and in the sheets of an audit."""
DEFAULT: dict[str, bool | None] = {**WORDS, **dict.fromkeys(("null", "none", "unknown", "nan"), None)}
"""Where a config gives no map."""
NUMBER_OF_FLOAT = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{0,30})?(?:e[+-]?[0-9]{1,3})?")
COMPARED = re.compile(r"(<=|>=|<|>)(.*)", re.DOTALL)
SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
YAML_BOOLEANS = {"true": ("yes", "on"), "false": ("no", "off")}
"""Words that YAML reads as a boolean where they have no quotes."""


class LabelMap:
    """`{correct: true, incorrect: false, "?": null}`, `{">= 6": true, "<= 2": false}`, `{"null": true, ">= 0": false}`.

    Case and white space do not count, `1`, `1.0` and `"1"` are one value, `"null"` is also an empty cell.
    """

    def __init__(self, given: Mapping[Any, bool | None] | None = None) -> None:
        """
        Raises:
            ConfigError: a value means no boolean or null, one has two meanings, or none means right or wrong.
        """
        given = DEFAULT if given is None else given
        if not isinstance(given, Mapping) or not all(
            one is None or isinstance(one, bool) for one in given.values()
        ):
            raise ConfigError(
                f"labels={given!r:.200}; it maps each value of the label column to true (right), false (wrong) or null "
                "(no label), for example {correct: true, incorrect: false}"
            )
        self._values: dict[str, bool | None] = {}
        self._compared: list[tuple[str, float, bool | None]] = []
        for value, meaning in given.items():
            if isinstance(value, str) and (found := COMPARED.fullmatch(value.strip())):
                self._compared.append((found[1], _number(found[2]), meaning))
                continue
            name = _canonical(value)
            if self._values.setdefault(name, meaning) is not meaning:
                raise ConfigError(f"labels: {value!r} has two meanings; case and white space do not count")
        for name, words in YAML_BOOLEANS.items() if given is not DEFAULT else ():
            if name in self._values:
                for word in words:
                    self._values.setdefault(word, self._values[name])
        if "null" in self._values:
            self._values.setdefault("", self._values["null"])
        if not {*self._values.values(), *(one[2] for one in self._compared)} & {True, False}:
            raise ConfigError("labels: no value means right (true) or wrong (false)")
        shown = ", ".join(f"{value}: {str(meaning).lower()}" for value, meaning in list(given.items())[:20])
        self._shown = shown.replace(": none", ": null")

    def meaning(self, value: Any, what: str) -> bool | None:
        """
        Args:
            value: of a row.
            what: the column, for errors.

        Raises:
            Unusable: the map does not have it.
        """
        known = value is None or isinstance(value, str | int | float | Decimal)
        name = _canonical(value) if known else None
        meanings = list[bool | None]()
        if name in self._values:
            meanings.append(self._values[name])
        elif name is not None and (number := _finite(name)) is not None:
            meanings += [meaning for sign, than, meaning in self._compared if SIGNS[sign](number, than)]
        if len(set(meanings)) != 1:
            problem = "means both right and wrong in" if meanings else "is not in"
            raise Unusable(
                "no label: label",
                f"{what} is {short(value)}, which {problem} the option labels: {{{self._shown}}}",
            )
        return meanings[0]


def _canonical(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return "nan"
    if isinstance(value, int) and abs(value) >= 10**15:
        value = 1e300 if value > 0 else -1e300  # beyond any mark; its digits may be too many to print
    text = str(value).strip().casefold()
    number = _finite(text)
    return str(int(number)) if number is not None and abs(number) < 1e15 and number.is_integer() else text


def _finite(text: str) -> float | None:
    """A number of ASCII digits with as many decimals as a float prints, `0.3333333333333333` or `1e-05`; else None."""
    return float(text) if NUMBER_OF_FLOAT.fullmatch(text) and math.isfinite(float(text)) else None


def _number(text: str) -> float:
    number = _finite(text.strip().casefold())
    if number is None:
        raise ConfigError(f"labels: {text[:60]!r} behind a sign of comparison is no number")
    return number
