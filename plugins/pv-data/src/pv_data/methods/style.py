"""`style` (QP): the proof as a mathematics forum, a textbook or a research article would have it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_data.methods.asking import changed
from pv_data.methods.base import Ask, Given
from pv_data.prompt import Prompt
from pv_rl.errors import ConfigError

__all__ = ["STYLES", "Style"]

STYLES = ("forum", "textbook", "article")


@dataclass(frozen=True, kw_only=True)
class Style:
    """The argument stays, its narration and its granularity change; for tests of how robust a verifier is."""

    style: str = "forum"
    """One of `STYLES`."""
    prompt: Prompt = field(init=False)

    needs_proof = True

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise ConfigError(f"style.style is {self.style!r}: give one of {', '.join(STYLES)}")
        names = ("style", f"style_{self.style}")
        object.__setattr__(self, "prompt", Prompt.load("pv_data.methods", *names, name=f"style-{self.style}"))

    @property
    def template(self) -> str:
        return self.prompt.template

    def prepare(self, given: Given) -> Ask:
        return changed(self.prompt, given, "Write the proof in this style now.")
