"""Argument checks: counts of proofs and probabilities. An error names the argument, its value and what is allowed."""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Literal

from pv_rl.errors import ConfigError, DataError

__all__ = ["exact", "share", "tally", "whole"]


def whole(name: str, value: object, *, least: int) -> int:
    """An integer of at least `least`; numpy's are integers too, True and 3.0 are not.

    Raises:
        DataError: it is not.
    """
    if not isinstance(value, bool):
        try:
            number = operator.index(value)  # type: ignore[arg-type] - what is none raises
        except TypeError:
            pass
        else:
            if number >= least:
                return number
    raise DataError(f"{name} is {value!r}; give an integer of at least {least}")


def tally(agree: object, checked: object, population: object = None) -> tuple[int, int, int | None]:
    """Counts that fit each other: `0 <= agree <= checked <= population`.

    Raises:
        DataError: they do not.
    """
    right, read = whole("agree", agree, least=0), whole("checked", checked, least=0)
    if right > read:
        raise DataError(f"agree is {right} of {read} checked; at most all of them can agree")
    if population is None:
        return right, read, None
    size = whole("population", population, least=1)
    if read > size:
        raise DataError(
            f"checked is {read} and population {size}; a proof is counted once, so give at most {size}"
        )
    return right, read, size


def share(name: str, value: object, *, ends: Literal["()", "(]", "[]"] = "()") -> float:
    """A probability: between 0 and 1. `ends`: whether 0 and 1 are allowed, in the notation of intervals.

    Raises:
        ConfigError: it is not.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        inside = 0 < value < 1 or (value == 0 and ends == "[]") or (value == 1 and ends != "()")
        if inside:
            return float(value)
    allowed = {"()": "above 0 and below 1", "(]": "above 0, at most 1", "[]": "from 0 to 1"}[ends]
    raise ConfigError(f"{name} is {value!r}; give a number {allowed}, such as 0.9")


def exact(value: float) -> Fraction:
    """The number that was written: 0.9 is 9/10, not the binary fraction beside it, so that 27 of 30 is 0.9."""
    return Fraction(repr(float(value)))
