"""Matcher of recorded traces: finds the pairs of a row by its id, its texts or its prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from pv_data.export.prompt import VerifierPrompt
from pv_eval.sets.values import text_of
from pv_eval.votes import Pair
from pv_verdicts import VerdictFormat

__all__ = ["IDS", "PROMPTS", "Matcher", "first_of"]

IDS = ("pair_id", "proof_id")
PROMPTS = ("input", "prompt")
MARK = re.compile(r"<proof (data-[0-9a-f]{24})>")
"""Of our own prompts: a hash of problem, proof and what else they show (`pv_data.prompt.mark_of`)."""
FURTHER = frozenset({"steps", "reference", "rubric"})


def first_of(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first value that is not null of columns of a row."""
    return next((row[name] for name in names if row.get(name) is not None), None)


class Matcher:
    """Finds the pairs of a row: several where gradings of one proof are pairs of their own."""

    def __init__(self, pairs: Sequence[Pair], form: VerdictFormat) -> None:
        self._by_id = {pair.pair_id: [pair] for pair in pairs}
        self._by_text: dict[tuple[str, str], list[Pair]] = {}
        for pair in pairs:
            self._by_text.setdefault((_key(pair.question), _key(pair.proof)), []).append(pair)
        self._by_mark = _marks(pairs, form)
        self._of_prompt: dict[str, list[Pair] | str] = {}

    def find(self, row: Mapping[str, Any]) -> list[Pair] | str:
        """The pairs, or why none is found."""
        name = first_of(row, IDS)
        if name is not None:
            return self._by_id.get(str(name), "pair_id is not in the set")
        problem, proof = text_of(row.get("problem")), text_of(row.get("proof"))
        if problem is not None and proof is not None:
            return self._by_text.get((_key(problem), _key(proof)), "problem and proof are not in the set")
        prompt = _prompt(first_of(row, PROMPTS))
        if prompt is None and row.get("id") is not None:  # last, as it may be a number of the row
            return self._by_id.get(str(row["id"]), "id is not in the set")
        if prompt is None:
            return "neither pair_id, nor problem and proof, nor a prompt"
        if prompt not in self._of_prompt:  # rollouts repeat their prompt
            self._of_prompt[prompt] = self._in(prompt)
        return self._of_prompt[prompt]

    def _in(self, prompt: str) -> list[Pair] | str:
        marked = {self._by_mark[mark] for mark in set(MARK.findall(prompt)) if mark in self._by_mark}
        if len(marked) == 1:
            return self._by_text[marked.pop()]
        text = _key(prompt)
        held = [(question, proof) for question, proof in self._by_text if proof in text and question in text]
        if len(held) > 1:  # a proof may be the beginning of another
            most = max(len(proof) for _, proof in held)
            held = [(question, proof) for question, proof in held if len(proof) == most]
        if len(held) == 1:
            return self._by_text[held[0]]
        return "prompt holds no pair of the set" if not held else "prompt holds several pairs of the set"


def _key(text: str) -> str:
    return " ".join(text.split())


def _marks(pairs: Sequence[Pair], form: VerdictFormat) -> dict[str, tuple[str, str]]:
    """Question and proof by the mark that our own prompts give them: the verdict's and the format's, which may show
    steps, reference and rubric, and then the mark is a hash of these too."""
    further = sorted(VerifierPrompt.load(form.prompt).shows & FURTHER)
    unseen = "{% if false %}" + "".join(f"{{{{ {name} }}}}" for name in further) + "{% endif %}"
    found = {}
    for text in {"{{ mark }}", "{{ mark }}" + unseen * bool(further)}:
        bare = VerifierPrompt(name="mark", text=text)
        for pair in pairs:
            for reference, rubric in product({pair.reference, ""}, {pair.rubric, ""}):
                mark = bare.messages(
                    pair.question, pair.proof, steps=pair.steps, reference=reference, rubric=rubric
                )[0]["content"]
                found[mark] = _key(pair.question), _key(pair.proof)
    return found


def _prompt(value: object) -> str | None:
    """A text, or a chat as verl's parquet has it."""
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        return "\n".join(str(one.get("content", "")) for one in value)
    return text_of(value)
