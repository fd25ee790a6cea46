"""Generation methods of one prompt: `proof`, `solution` (Q), `rephrase`, `augment`, `style`, `translate` (QP)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from pv_data.methods.base import Ask, Given, Unfit, question, question_and_proof
from pv_data.methods.language import LANGUAGES, language_fault, language_of
from pv_data.methods.reading import Reading
from pv_data.prompt import Prompt
from pv_rl.errors import ConfigError

__all__ = [
    "CHANGES",
    "STYLES",
    "Augment",
    "OwnProof",
    "Prompted",
    "Rephrase",
    "Solution",
    "Style",
    "Translate",
]

CHANGES = ("wording", "sentences", "connectives", "notation", "register", "layout")
"""Changes that `augment` can ask for; prompts/augment.txt says what each means."""
STYLES = ("forum", "textbook", "article")


@dataclass(frozen=True, kw_only=True)
class Prompted(ABC):
    """A method that shows the model a problem (Q), or a problem with a proof (QP)."""

    needs_proof: ClassVar[bool] = True
    prompt: Prompt

    @property
    def template(self) -> str:
        """Name and hash of the prompt."""
        return self.prompt.template

    @abstractmethod
    def prepare(self, given: Given) -> Ask:
        """The question; raises `Unfit`."""

    def _new(self, given: Given, closing: str) -> Ask:
        """Show the problem, and read a proof of the model's own."""
        problem = question(given)
        messages = self.prompt.messages({"problem": problem}, closing)
        reading = Reading(prompt=self.prompt, user=messages[1]["content"], problem=problem)
        return Ask(messages=messages, read=reading)

    def _changed(
        self,
        given: Given,
        closing: str,
        *,
        keeps_script: bool = True,
        also: Callable[[str], str | None] | None = None,
    ) -> Ask:
        """Show problem and proof, and read a proof that is another text."""
        problem, proof = question_and_proof(given)
        messages = self.prompt.messages({"problem": problem, "proof": proof}, closing)
        reading = Reading(
            prompt=self.prompt,
            user=messages[1]["content"],
            problem=problem,
            source=proof,
            keeps_script=keeps_script,
            also=also,
        )
        return Ask(messages=messages, read=reading)


@dataclass(frozen=True, kw_only=True)
class OwnProof(Prompted):
    """`proof` (Q): the model proves the problem, with the usual faults: cases left out, lemmas that do not exist."""

    needs_proof = False
    prompt: Prompt = field(default_factory=partial(Prompt.load, "pv_data.methods", "proof"))

    def prepare(self, given: Given) -> Ask:
        return self._new(given, "Write the proof now.")


@dataclass(frozen=True, kw_only=True)
class Solution(Prompted):
    """`solution` (Q): the model solves a problem that has a short answer, which it never sees."""

    needs_proof = False
    prompt: Prompt = field(default_factory=partial(Prompt.load, "pv_data.methods", "solution"))

    def prepare(self, given: Given) -> Ask:
        if not given.problem.answer.strip():
            raise Unfit("no short answer", "the method is for problems with a final answer; take proof")
        return self._new(given, "Write the solution now.")


@dataclass(frozen=True, kw_only=True)
class Rephrase(Prompted):
    """`rephrase` (QP): a reference proof, rewritten in the model's own style. It is mostly right where the reference
    is, and may bring small faults of its own."""

    prompt: Prompt = field(default_factory=partial(Prompt.load, "pv_data.methods", "rephrase"))

    def prepare(self, given: Given) -> Ask:
        return self._changed(given, "Write the proof anew now.")


@dataclass(frozen=True, kw_only=True)
class Augment(Prompted):
    """`augment` (QP): one small change of wording, drawn by the seed; the reasoning stays, and so do its faults."""

    changes: tuple[str, ...] | list[str] = CHANGES
    """Changes to draw from."""
    prompt: Prompt = field(default_factory=partial(Prompt.load, "pv_data.methods", "augment"))

    def __post_init__(self) -> None:
        known = isinstance(self.changes, list | tuple) and all(one in CHANGES for one in self.changes)
        if not known or not self.changes:
            raise ConfigError(
                f"options.changes of augment is {self.changes!r}: give a list of one or more of {', '.join(CHANGES)}"
            )

    def prepare(self, given: Given) -> Ask:
        change = self.changes[given.seed % len(self.changes)]
        return self._changed(given, f"Make the change called `{change}` now.")


@dataclass(frozen=True, kw_only=True)
class Style(Prompted):
    """`style` (QP): the proof as a mathematics forum, a textbook or a research article would have it. The argument
    stays, its narration and granularity change; it tests how robust a verifier is."""

    style: str = "forum"
    """One of `STYLES`."""
    prompt: Prompt = field(init=False)

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise ConfigError(f"options.style of style is {self.style!r}: give one of {', '.join(STYLES)}")
        names = ("style", f"style_{self.style}")
        object.__setattr__(self, "prompt", Prompt.load("pv_data.methods", *names, name=f"style-{self.style}"))

    def prepare(self, given: Given) -> Ask:
        return self._changed(given, "Write the proof in this style now.")


@dataclass(frozen=True, kw_only=True)
class Translate(Prompted):
    """`translate` (QP): the proof in another language, sentence by sentence, with its faults. Another entry of the
    config translates into another language."""

    language: str = "en"
    """ISO 639-1 code, one of `LANGUAGES`."""
    prompt: Prompt = field(init=False)

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ConfigError(
                f"options.language of translate is {self.language!r}: give one of {', '.join(sorted(LANGUAGES))}"
            )
        prompt = Prompt.load("pv_data.methods", "translate", name=f"translate-{self.language}")
        object.__setattr__(self, "prompt", prompt)

    def prepare(self, given: Given) -> Ask:
        written_in = language_of(given.proof.text) if given.proof else None
        if (written_in or given.problem.language) == self.language:
            raise Unfit("same language", f"the proof is in {LANGUAGES[self.language].name} already")
        return self._changed(
            given,
            f"Translate the proof into {LANGUAGES[self.language].name} now.",
            keeps_script=False,
            also=partial(language_fault, code=self.language),
        )
