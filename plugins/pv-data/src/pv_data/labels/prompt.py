"""What a judge is asked about a proof: the problem and the proof, and nothing else.

It never sees a label, nor where the proof is from: source, method and model are no arguments here. The criteria are the
paper's (Appendix, "LLM check"), the words ours.
"""

from __future__ import annotations

from pv_data.prompt import Prompt
from pv_judge.answer import Messages

__all__ = ["CHECK_TEMPLATE", "check_messages"]

PROMPT = Prompt.load("pv_data.labels", "check_proof")
CHECK_TEMPLATE = PROMPT.template
"""`check_proof@` and the prompt's hash."""


def check_messages(problem_text: str, proof_text: str) -> Messages:
    """The messages for one proof. Both texts are untrusted and stand behind a mark that they cannot contain."""
    return PROMPT.messages({"problem": problem_text, "proof": proof_text}, "Grade the proof now.")
