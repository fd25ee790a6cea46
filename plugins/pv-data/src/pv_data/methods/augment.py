"""`augment` (QP): one small change of wording at a time; the reasoning stays, and so do its faults."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_data.methods.asking import changed
from pv_data.methods.base import Ask, Given
from pv_data.prompt import Prompt
from pv_rl.errors import ConfigError

__all__ = ["CHANGES", "Augment"]

CHANGES = ("wording", "sentences", "connectives", "notation", "register", "layout")
"""What can be changed; prompts/augment.txt says what each means."""


@dataclass(frozen=True, kw_only=True)
class Augment:
    """Which change it is goes by the seed of the input."""

    changes: tuple[str, ...] | list[str] = CHANGES
    """Those that are drawn from."""
    prompt: Prompt = field(default_factory=lambda: Prompt.load("pv_data.methods", "augment"))

    needs_proof = True

    def __post_init__(self) -> None:
        known = isinstance(self.changes, list | tuple) and all(one in CHANGES for one in self.changes)
        if not known or not self.changes:
            raise ConfigError(
                f"augment.changes is {self.changes!r}: give a list of one or more of {', '.join(CHANGES)}"
            )

    @property
    def template(self) -> str:
        return self.prompt.template

    def prepare(self, given: Given) -> Ask:
        change = self.changes[given.seed % len(self.changes)]
        return changed(self.prompt, given, f"Make the change called `{change}` now.")
