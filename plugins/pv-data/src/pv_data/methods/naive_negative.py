"""`naive_negative`: outputs that are wrong by construction, made here: no model is asked and nothing is paid.

They teach a verifier the easy cases: refusals, empty talk, proofs that break off, texts about something else.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from pv_data.methods.base import Given, Made, Unfit
from pv_data.methods.inputs import question
from pv_data.methods.naive_forms import FORMS
from pv_data.methods.truncation import truncated
from pv_rl.errors import ConfigError

__all__ = ["TRUNCATED", "NaiveNegative"]

TRUNCATED = "truncated"
ALL = (*FORMS, TRUNCATED)


@dataclass(frozen=True, kw_only=True)
class NaiveNegative:
    """The seed of the input draws the form and its words. A form that does not fit the input gives way to another."""

    forms: tuple[str, ...] | list[str] = ALL
    """Those that are drawn from. With `truncated` among them the method works on proofs, else on problems."""

    template = ""

    def __post_init__(self) -> None:
        known = isinstance(self.forms, list | tuple) and all(one in ALL for one in self.forms)
        if not known or not self.forms:
            raise ConfigError(
                f"naive_negative.forms is {self.forms!r}: give a list of one or more of {', '.join(ALL)}"
            )

    @property
    def needs_proof(self) -> bool:
        return TRUNCATED in self.forms

    def prepare(self, given: Given) -> Made:
        problem = question(given)
        draws = random.Random(given.seed)
        left = list(self.forms)
        while True:
            form = left.pop(int(draws.random() * len(left)))
            try:
                text = self._made(form, problem, given, draws)
            except Unfit:
                if not left:
                    raise
                continue
            return Made(text=text, known=False, known_by=f"construction: {form}")

    def _made(self, form: str, problem: str, given: Given, draws: random.Random) -> str:
        if form != TRUNCATED:
            return FORMS[form](problem, draws)
        if given.proof is None:
            raise Unfit("no proof", "only a proof can be cut")
        return truncated(given.proof.text, given.problem.answer, draws)
