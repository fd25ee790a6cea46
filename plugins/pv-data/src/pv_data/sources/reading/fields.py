"""Row fields, each checked when it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pv_data.sources.reading.unusable import Unusable

__all__ = ["LONGEST", "NUMBER", "Fields", "checked", "short"]

LONGEST = 1_000_000
"""Characters of a text; what is longer is no proof."""
NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?")
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Fields:
    """One row. Every method raises `Unusable` for a value that is not what it should be."""

    where: str
    """File and line, or row."""
    values: Mapping[str, Any]

    def text(self, key: str) -> str:
        """A text that has to be there, without white space at its ends."""
        return _filled(self._value(key), key)

    def optional(self, key: str) -> str:
        """The same, or nothing where the field is missing, null or blank."""
        value = self.values.get(key)
        return "" if value is None or (isinstance(value, str) and not value.strip()) else _filled(value, key)

    def name(self, key: str) -> str:
        """A text or a whole number that names something; 7.0 is 7, as a column with gaps is one of floats in pandas."""
        value = self._value(key)
        if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
            value = int(value)
        return str(value) if _whole(value) and abs(value) < 10**18 else _filled(value, key)

    def flag(self, key: str) -> bool:
        """`true` or `false`, and nothing that only looks like it."""
        value = self._value(key)
        if not isinstance(value, bool):
            raise Unusable(f"no label: {key}", f"{key} is {short(value)}; it is true or false")
        return value

    def number(self, key: str) -> float:
        """A finite number, also one that is written as text with ASCII digits."""
        value = self._value(key)
        if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
            value = float(value)
        # whole numbers are unbounded in JSON and may not fit into a float
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) < 1e15
            or not math.isfinite(value)
        ):
            raise Unusable(f"no number: {key}", f"{key} is {short(value)}")
        return float(value)

    def whole(self, key: str) -> int:
        """A whole number that is written as one."""
        value = self._value(key)
        if not _whole(value):
            raise Unusable(f"no number: {key}", f"{key} is {short(value)}; it is a whole number")
        return value

    def items(self, key: str) -> list[Any]:
        """A list, of anything."""
        value = self._value(key)
        if not isinstance(value, list):
            raise Unusable(f"not a list: {key}", f"{key} is {short(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list, one or more."""
        texts = tuple(_filled(one, key) for one in self.items(key))
        if not texts:
            raise Unusable(f"empty: {key}", "a list of no steps")
        return texts

    def steps(self, key: str) -> str:
        """The texts of a list, with a blank line between them."""
        return checked("\n\n".join(self.texts(key)), key)

    def inner(self, key: str) -> Fields:
        """The fields of an object in a field."""
        value = self._value(key)
        if not isinstance(value, Mapping):
            raise Unusable(f"not an object: {key}", f"{key} is {short(value)}")
        return Fields(where=f"{self.where}:{key}", values=value)

    def _value(self, key: str) -> Any:
        if key not in self.values:
            raise Unusable(f"missing: {key}", f"the row has {', '.join(map(str, list(self.values)[:20]))}")
        if self.values[key] is None:
            raise Unusable(f"empty: {key}", f"the row has no value for {key}")
        return self.values[key]


def checked(text: str, what: str) -> str:
    """The text, if it can be stored and shown to a model."""
    if len(text) > LONGEST:
        raise Unusable(f"giant: {what}", f"{len(text)} characters; at most {LONGEST} are taken")
    if "\x00" in text:
        raise Unusable(f"NUL character: {what}")
    if found := SURROGATE.search(text):
        # bytes that are no UTF-8 come through the reader of CSV as U+DC80 to U+DCFF
        kind = "not UTF-8" if "\udc80" <= found[0] <= "\udcff" else "lone surrogate"
        raise Unusable(f"{kind}: {what}", f"at character {found.start()}")
    return text


def _filled(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise Unusable(f"not text: {key}", f"{key} is {short(value)}")
    text = checked(value, key).strip()
    if not text:
        raise Unusable(f"empty: {key}")
    return text


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def short(value: Any) -> str:
    """The kind of a value and the start of it; never the whole of a giant or deep one."""
    if isinstance(value, str):
        return repr(value[:60])
    if value is None or isinstance(value, bool | float) or (_whole(value) and abs(value) < 10**18):
        return repr(value)
    return f"a {type(value).__name__}"
