"""`mask_completion` (Q and masked P): key steps of a proof are hidden, and the model writes what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field

from pv_data.methods.base import Ask, Given
from pv_data.methods.inputs import question_and_proof
from pv_data.methods.masking import masked
from pv_data.methods.reading import Reading
from pv_data.prompt import Prompt
from pv_rl.errors import ConfigError

__all__ = ["MaskCompletion"]


@dataclass(frozen=True, kw_only=True)
class MaskCompletion:
    """A reference proof with steps of a model's: omissions and leaps in it are hard to see.

    What is not hidden is the reference, character for character: only the gaps come from the model.
    """

    share: float = 0.3
    """Part of the steps that is hidden, above 0, at most 0.7."""
    prompt: Prompt = field(default_factory=lambda: Prompt.load("pv_data.methods", "mask_completion"))

    needs_proof = True

    def __post_init__(self) -> None:
        share = self.share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 0.7:
            raise ConfigError(f"mask_completion.share is {share!r}: give a number above 0, at most 0.7")

    @property
    def template(self) -> str:
        return self.prompt.template

    def prepare(self, given: Given) -> Ask:
        problem, proof = question_and_proof(given)
        hidden = masked(proof, share=self.share, seed=given.seed)
        messages = self.prompt.messages(
            {"problem": problem, "proof": hidden.shown},
            f"Fill the gaps now: {', '.join(hidden.gap(number + 1) for number in range(len(hidden.hidden)))}.",
        )
        reading = Reading(prompt=self.prompt, user=messages[1]["content"], problem=problem, source=proof)
        return Ask(messages=messages, read=lambda text: reading.checked(hidden.filled(hidden.read(text))))
