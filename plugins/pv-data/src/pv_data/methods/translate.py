"""`translate` (QP): the proof in another language, sentence by sentence, its faults with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from pv_data.methods.asking import changed
from pv_data.methods.base import Ask, Given, Unfit
from pv_data.methods.language import LANGUAGES, language_fault, language_of
from pv_data.prompt import Prompt
from pv_rl.errors import ConfigError

__all__ = ["Translate"]


@dataclass(frozen=True, kw_only=True)
class Translate:
    """Into one language; another entry of the config translates into another."""

    language: str = "en"
    """ISO 639-1 code, one of `LANGUAGES`."""
    prompt: Prompt = field(init=False)

    needs_proof = True

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ConfigError(
                f"translate.language is {self.language!r}: give one of {', '.join(sorted(LANGUAGES))}"
            )
        prompt = Prompt.load("pv_data.methods", "translate", name=f"translate-{self.language}")
        object.__setattr__(self, "prompt", prompt)

    @property
    def template(self) -> str:
        return self.prompt.template

    def prepare(self, given: Given) -> Ask:
        written_in = language_of(given.proof.text) if given.proof else None
        if (written_in or given.problem.language) == self.language:
            raise Unfit("same language", f"the proof is in {LANGUAGES[self.language].name} already")
        return changed(
            self.prompt,
            given,
            f"Translate the proof into {LANGUAGES[self.language].name} now.",
            keeps_script=False,
            also=partial(language_fault, code=self.language),
        )
