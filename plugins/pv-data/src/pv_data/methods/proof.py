"""`proof` (Q): the model proves the problem by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_data.methods.asking import new
from pv_data.methods.base import Ask, Given
from pv_data.prompt import Prompt

__all__ = ["OwnProof"]


@dataclass(frozen=True, kw_only=True)
class OwnProof:
    """An attempt by the usual means, with the faults of one: cases left out, lemmas that do not exist."""

    prompt: Prompt = field(default_factory=lambda: Prompt.load("pv_data.methods", "proof"))

    needs_proof = False

    @property
    def template(self) -> str:
        return self.prompt.template

    def prepare(self, given: Given) -> Ask:
        return new(self.prompt, given, "Write the proof now.")
