"""`rephrase` (QP): a reference proof, written anew in the model's own style."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_data.methods.asking import changed
from pv_data.methods.base import Ask, Given
from pv_data.prompt import Prompt

__all__ = ["Rephrase"]


@dataclass(frozen=True, kw_only=True)
class Rephrase:
    """Mostly right where the reference is; may bring small faults of its own."""

    prompt: Prompt = field(default_factory=lambda: Prompt.load("pv_data.methods", "rephrase"))

    needs_proof = True

    @property
    def template(self) -> str:
        return self.prompt.template

    def prepare(self, given: Given) -> Ask:
        return changed(self.prompt, given, "Write the proof anew now.")
