"""`mask_completion` (Q and masked P): key steps of a proof are hidden, and the model writes what is missing."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pv_data.methods.base import Ask, Given, Unfit, question_and_proof
from pv_data.methods.reading import Reading, bare, body_of, refuse
from pv_data.methods.steps import split_steps
from pv_data.prompt import Prompt, mark_of
from pv_rl.errors import ConfigError

__all__ = ["MaskCompletion", "Masked", "key_steps", "masked"]


MIN_STEPS = 4
INFERENCE = re.compile(
    r"\b(?:therefore|thus|hence|since|because|so|implies|imply|follows?|conclude|yields?|gives?|obtain|contradict\w*|suppose"
    r"|assume|claim|induction|it suffices)\b|因此|所以|因为|从而|故|\\implies|\\Rightarrow|⇒",
    re.IGNORECASE,
)
RELATION = re.compile(r"[=<>≤≥≡∣]|\\(?:leq?|geq?|equiv|mid|in|subset\w*|cong|sim)\b")
ANY_GAP = re.compile(r"\[\[\s*gap\b", re.IGNORECASE)
LEAD_CHARACTERS = 400
"""So much may a model say before its first gap."""
QUOTED_CHARACTERS = 40
"""A neighbour of at least so many characters, found in a gap, was copied."""


@dataclass(frozen=True, kw_only=True)
class Masked:
    """A proof in steps, some of them hidden."""

    steps: tuple[str, ...]
    """All of them; joined they are the proof."""
    hidden: tuple[int, ...]
    """Indices, ascending."""
    mark: str
    """A hash of the proof, which it cannot contain."""

    def gap(self, number: int) -> str:
        """The mark of the gap 1, 2, ..."""
        return f"[[gap {number} of {self.mark}]]"

    @property
    def shown(self) -> str:
        """The proof with a mark in the place of each hidden step."""
        return self._with([self.gap(number) for number in range(1, len(self.hidden) + 1)])

    @property
    def originals(self) -> tuple[str, ...]:
        """What is hidden, without the white space around it."""
        return tuple(self.steps[index].strip() for index in self.hidden)

    def filled(self, fills: Sequence[str]) -> str:
        """The whole proof, with `fills` in the gaps. With `originals` it is the proof that was masked."""
        return self._with(fills)

    def read(self, text: str) -> list[str]:
        """What a model's answer puts into the gaps; raises `Unfit`.

        The answer repeats the mark of each gap, once and in order, each followed by the missing text.
        """
        body = body_of(text)
        refuse(body)
        found = list(re.finditer(rf"\[\[gap (\d{{1,4}}) of {self.mark}\]\]", body))
        numbers = [int(one[1]) for one in found]
        wanted = list(range(1, len(self.hidden) + 1))
        if sorted(set(wanted) - set(numbers)):
            raise Unfit("gap not filled", f"the answer has the gaps {numbers}, the proof {wanted}")
        if numbers != wanted:
            raise Unfit("gaps in disorder", f"the answer has the gaps {numbers}, the proof {wanted}")
        if found[0].start() > LEAD_CHARACTERS:
            raise Unfit("text before the gaps", f"{found[0].start()} characters")
        ends = [*(one.start() for one in found[1:]), len(body)]
        fills = [
            body[one.end() : end].strip().removeprefix(":").strip()
            for one, end in zip(found, ends, strict=True)
        ]
        for index, fill in zip(self.hidden, fills, strict=True):
            self._check(index, fill)
        return fills

    def _check(self, index: int, fill: str) -> None:
        if not any(character.isalnum() for character in fill):
            raise Unfit("gap not filled", "nothing stands behind the mark of a gap")
        refuse(fill)
        if self.mark in fill or ANY_GAP.search(fill):
            raise Unfit("mask left", fill[:200])
        for neighbour in (index - 1, index + 1):
            if 0 <= neighbour < len(self.steps) and neighbour not in self.hidden:
                near = bare(self.steps[neighbour])
                # A proof may say a step again in the next one: then the missing text holds it.
                if (
                    len(near) >= QUOTED_CHARACTERS
                    and near in bare(fill)
                    and near not in bare(self.steps[index])
                ):
                    raise Unfit("echo", "a gap holds the step beside it")

    def _with(self, fills: Sequence[str]) -> str:
        at: Mapping[int, str] = dict(zip(self.hidden, fills, strict=True))
        return "".join(
            _around(step, at[index]) if index in at else step for index, step in enumerate(self.steps)
        )


def masked(proof: str, *, share: float, seed: int) -> Masked:
    """Hide key steps of a proof; raises `Unfit` if it has too few steps."""
    steps = split_steps(proof)
    if len(steps) < MIN_STEPS:
        raise Unfit("too few steps", f"{len(steps)}; at least {MIN_STEPS}, of which one stays")
    mark = mark_of(proof).removeprefix("data-")[:12]
    return Masked(steps=tuple(steps), hidden=key_steps(steps, share=share, seed=seed), mark=mark)


def key_steps(steps: Sequence[str], *, share: float, seed: int) -> tuple[int, ...]:
    """Draw `share` of the steps, at least one, never the first, which says what is to be done, and none without a word.

    Without replacement; a step that infers has weight 3, one that states a relation 2, any other 1 (Efraimidis and
    Spirakis, 2006: the largest u ** (1 / weight) win).
    """
    draws = random.Random(seed)
    keys = {index: draws.random() ** (1 / _weight(steps[index])) for index in range(1, len(steps))}
    # A line of dashes between two parts is no step: nothing can be written in its place.
    known = [index for index in keys if any(map(str.isalnum, steps[index]))] or list(keys)
    count = min(max(1, round(share * len(steps))), len(known))
    return tuple(sorted(sorted(known, key=lambda index: -keys[index])[:count]))


def _weight(step: str) -> int:
    return 3 if INFERENCE.search(step) else 2 if RELATION.search(step) else 1


def _around(step: str, core: str) -> str:
    """`core` between the white space that the step has before and behind it."""
    lead = len(step) - len(step.lstrip())
    return step[:lead] + core + step[len(step.rstrip()) :]


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
            raise ConfigError(
                f"options.share of mask_completion is {share!r}: give a number above 0, at most 0.7"
            )

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
