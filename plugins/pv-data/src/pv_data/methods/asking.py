"""The two kinds of question that most methods ask: to write a proof of a problem, and to change a proof."""

from __future__ import annotations

from collections.abc import Callable

from pv_data.methods.base import Ask, Given
from pv_data.methods.inputs import question, question_and_proof
from pv_data.methods.reading import Reading
from pv_data.prompt import Prompt

__all__ = ["changed", "new"]


def new(prompt: Prompt, given: Given, closing: str) -> Ask:
    """Show the problem (Q), and read a proof of the model's own."""
    problem = question(given)
    messages = prompt.messages({"problem": problem}, closing)
    return Ask(messages=messages, read=Reading(prompt=prompt, user=messages[1]["content"], problem=problem))


def changed(
    prompt: Prompt,
    given: Given,
    closing: str,
    *,
    keeps_script: bool = True,
    also: Callable[[str], str | None] | None = None,
) -> Ask:
    """Show problem and proof (QP), and read a proof that is another text."""
    problem, proof = question_and_proof(given)
    messages = prompt.messages({"problem": problem, "proof": proof}, closing)
    reading = Reading(
        prompt=prompt,
        user=messages[1]["content"],
        problem=problem,
        source=proof,
        keeps_script=keeps_script,
        also=also,
    )
    return Ask(messages=messages, read=reading)
