"""`solution` (Q): the model solves a problem that has a short answer. It never sees that answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_data.methods.asking import new
from pv_data.methods.base import Ask, Given, Unfit
from pv_data.prompt import Prompt

__all__ = ["Solution"]


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A worked solution that ends with the final answer."""

    prompt: Prompt = field(default_factory=lambda: Prompt.load("pv_data.methods", "solution"))

    needs_proof = False

    @property
    def template(self) -> str:
        return self.prompt.template

    def prepare(self, given: Given) -> Ask:
        if not given.problem.answer.strip():
            raise Unfit("no short answer", "the method is for problems with a final answer; take proof")
        return new(self.prompt, given, "Write the solution now.")
