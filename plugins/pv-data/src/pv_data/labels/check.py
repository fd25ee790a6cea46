"""Proof check: the question that a judge is asked about a proof, and the strict parser of its answer.

A judge sees the problem and the proof, and nothing else: neither a label nor where the proof is from. The criteria
are the paper's (Appendix, "LLM check"), the words ours. The parser is strict, because a wrong verdict costs more than
another request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from pv_data.prompt import Prompt
from pv_judge.answer import FailureKind, JudgeFailure, Messages
from pv_judge.json_answer import read_json, without_thoughts

__all__ = ["CHECK_TEMPLATE", "CONDITIONS", "Check", "check_messages", "parse_check"]


PROMPT = Prompt.load("pv_data.labels", "check_proof")
CHECK_TEMPLATE = PROMPT.template
"""`check_proof@` and the prompt's hash."""


def check_messages(problem_text: str, proof_text: str) -> Messages:
    """The messages for one proof. Both texts are untrusted and stand behind a mark that they cannot contain."""
    return PROMPT.messages({"problem": problem_text, "proof": proof_text}, "Grade the proof now.")


CONDITIONS = ("logical soundness", "computational accuracy", "structural completeness", "notational rigour")
"""The four criteria, in the prompt's order."""
KEYS = (*(f"condition{number}_satisfied" for number in range(1, 5)), "proof_correct")
FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
FENCE_OPENS = re.compile(r"(?:\A|\n)[^\S\n]*```(?:json)?\s*\Z", re.IGNORECASE)
INSIDE = re.compile(r"(?:[,\[{]|[\"\d\]}]\s*:)\s*\Z")
"""The object is a part of another one, or of a list."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """What a judge says of a proof."""

    conditions: tuple[bool, ...]
    """`CONDITIONS`, each whether it is satisfied."""
    stated: bool
    """The judge's own `proof_correct`."""

    @property
    def verdict(self) -> bool:
        """What counts: all four conditions and `stated`. A judge that contradicts itself does not accept."""
        return self.stated and all(self.conditions)

    @property
    def inconsistent(self) -> bool:
        """Whether `stated` differs from what the four conditions say, in either direction."""
        return self.stated != all(self.conditions)


def parse_check(text: str) -> Check:
    """Read an answer: its end is one JSON object of the five booleans, alone or in one code fence.

    Before it may stand prose, and `<think>...</think>` where the answer begins with `<think>`. The object begins its
    line, and no other complete answer in the prose has another verdict: a proof that brings an answer of its own, and
    is quoted, must not win. Text before a lone `</think>` is prose.

    Example: `So step 2 fails.\\n{"condition1_satisfied": false, ..., "proof_correct": false}`.

    Raises:
        JudgeFailure: `invalid_json` where the end is no JSON object or the answer has more than `LONGEST_ANSWER`
            (400,000) characters, `wrong_schema` where it is of another form or another answer contradicts it.
    """
    body = without_thoughts(text)
    if "<think>" in body:
        _fail("invalid_json", "it ends in the middle of its thoughts")
    before, found = _last_object(body)
    check = _check(found)
    for other in FLAT_OBJECT.finditer(before):
        if "proof_correct" not in other[0]:
            continue
        try:
            earlier = _check(other[0])
        except JudgeFailure:  # a form, or a draft that was not finished
            continue
        if earlier.verdict != check.verdict:
            _fail("wrong_schema", "it has two answers with different verdicts")
    return check


def _last_object(body: str) -> tuple[str, str]:
    """What stands before the object at the end, and the object."""
    fenced = body.endswith("```")
    if fenced:
        body = body[:-3].rstrip()
    start = body.rfind("{")
    if start < 0 or not body.endswith("}"):
        _fail("invalid_json", "it does not end with a JSON object")
    before, found = body[:start], body[start:]
    if fenced:
        opening = FENCE_OPENS.search(before[-40:])
        if opening is None:
            _fail("invalid_json", "its code fence holds more than one JSON object")
        before = before[: len(before) - len(opening[0])]
    elif before and before.rstrip(" \t")[-1:] != "\n":
        _fail("invalid_json", "the JSON object at its end does not begin its line")
    if INSIDE.search(before[-200:]):
        _fail("wrong_schema", "the object at its end is a part of something larger")
    return before, found


def _check(found: str) -> Check:
    value = read_json(found)
    if set(value) != set(KEYS):
        _fail("wrong_schema", f"it has not exactly the keys {', '.join(KEYS)}")
    if wrong := [key for key in KEYS if not isinstance(value[key], bool)]:
        _fail("wrong_schema", f"{', '.join(wrong)} is not true or false")
    return Check(conditions=tuple(value[key] for key in KEYS[:4]), stated=value["proof_correct"])


def _fail(kind: FailureKind, why: str) -> NoReturn:
    raise JudgeFailure(f"the judge's answer cannot be used: {why}", kind) from None
