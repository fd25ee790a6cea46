"""Answer before a verdict: what a pattern finds in a trace that ends in `### True` or `### False`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pv_rl.errors import ConfigError, SetupError
from pv_rl.verdict import after_thinking, parse_verdict

__all__ = ["compile_pattern", "read_before_verdict"]

LONGEST_PATTERN = 2000
"""Characters of a pattern, and at the end of a trace that it is searched in."""
PATTERN_S = 0.2
"""Seconds that a pattern may search. A trace that takes longer has no answer before its verdict."""


def read_before_verdict(trace: str, pattern: Any, require: Sequence[str]) -> tuple[bool | None, str | None]:
    """The verdict, and for one that rejects the group of the pattern's last match.

    Args:
        trace: the trace, of any length.
        pattern: of `compile_pattern`.
        require: texts without which there is no verdict.
    """
    text = after_thinking(trace)
    verdict = parse_verdict(trace) if all(phrase in text for phrase in require) else None
    found: list[str] = []
    if verdict is False:
        with suppress(TimeoutError):
            found = pattern.findall(text[-LONGEST_PATTERN:], timeout=PATTERN_S)
    return verdict, found[-1] if found else None


def compile_pattern(pattern: object) -> Any:
    """A regular expression with one group, which can be searched with a timeout.

    Raises:
        ConfigError: it is not one.
        SetupError: the package regex is not installed.
    """
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise ConfigError(
            f"pattern={pattern!r:.80}; expected a regular expression as text, for example 'S(\\d+) is'"
        )
    try:
        import regex  # unlike re, it can stop a search that takes too long
    except ImportError as error:
        raise SetupError(
            f"the option pattern needs the package regex, which cannot be imported ({error}): pip install regex"
        ) from error
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ConfigError(f"pattern={pattern!r:.80} is not a regular expression: {error}") from error
    if compiled.groups != 1:
        raise ConfigError(
            f"pattern={pattern!r:.80} has {compiled.groups} groups; expected one, around the answer"
        )
    return compiled
