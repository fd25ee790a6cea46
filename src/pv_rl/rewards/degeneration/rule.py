"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from pv_rl.errors import PluginError
from pv_rl.hookspecs import NAME, Parameter

__all__ = ["MOST_SPANS", "Anomaly", "DegenerationRule", "Finder", "Span"]

Span: TypeAlias = tuple[int, int]
"""Start and end of a piece of the text, in characters."""

MOST_SPANS = 16
"""A rule's further spans are left out: one is enough for a veto, and a ledger keeps them all."""

Finder: TypeAlias = Callable[..., Iterable[Span]]
"""`find(text, **thresholds)`: the pieces of the text that are evidence."""


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """One piece of evidence that a trace is malformed: `text[start:end]`."""

    rule: str
    """The rule's name."""
    start: int
    """In characters."""
    end: int
    """In characters, exclusive."""


@dataclass(frozen=True, kw_only=True)
class DegenerationRule:
    """A rule of the gate. A `PluginError` says what is wrong with it."""

    name: str
    """Letters, digits, `_` and `-`; the key in the config and in the metrics."""
    find: Finder
    """Called with the text and every threshold by name. The text is untrusted and of any length: take linear time."""
    thresholds: tuple[Parameter, ...] = ()
    """Each with a default, the bounds and a few words on what it means."""
    meaning: str = ""
    """What the rule finds, in a few words."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise PluginError(
                f"a degeneration rule named {self.name!r}; a name is a letter, then letters, digits, '_' or '-'"
            )
        if not callable(self.find):
            raise PluginError(f"the rule {self.name!r} with find={self.find!r}; it is a function of a text")
        if not isinstance(self.thresholds, tuple) or not all(
            isinstance(one, Parameter) and one.default is not None for one in self.thresholds
        ):
            raise PluginError(
                f"the rule {self.name!r} with the thresholds {self.thresholds!r}; they are a tuple of "
                "pv_rl.hookspecs.Parameter, each with a default"
            )

    def __call__(self, text: str) -> list[Anomaly]:
        """The first `MOST_SPANS` things that the rule finds in `text`.

        Raises:
            PluginError: the rule failed, or gave something that is no span of the text.
        """
        given = {one.name: one.default for one in self.thresholds}
        try:
            spans = list(islice(self.find(text, **given), MOST_SPANS))
        except Exception as error:
            raise PluginError(f"the degeneration rule {self.name!r} failed: {error!r}") from error
        return [self._anomaly(span, len(text)) for span in spans]

    def _anomaly(self, span: Span, length: int) -> Anomaly:
        match span:
            case (int(start), int(end)) if 0 <= start < end <= length:
                return Anomaly(rule=self.name, start=start, end=end)
        raise PluginError(
            f"the degeneration rule {self.name!r} gave {span!r}; it gives (start, end) with "
            f"0 <= start < end <= {length}, the length of the text in characters"
        )
