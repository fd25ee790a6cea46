"""Parser of a judge's answer, which is untrusted: removes thoughts and a code fence, and reads the one JSON value."""

from __future__ import annotations

from typing import Any

from pv_judge.answer import JudgeFailure
from pv_judge.files import load_json

__all__ = ["LONGEST_ANSWER", "read_json", "unambiguous", "without_thoughts"]

LONGEST_ANSWER = 400_000
"""Characters of an answer, about 100,000 tokens. A longer answer is refused."""


def without_thoughts(text: str) -> str:
    """Remove `<think>...</think>` at the beginning of an answer, and the white space around the rest.

    Only an answer that begins with `<think>` has thoughts: text before a lone `</think>` is part of the answer.

    Raises:
        JudgeFailure: `invalid_json`: the answer is longer than `LONGEST_ANSWER`, or ends in its thoughts.
    """
    if len(text) > LONGEST_ANSWER:
        raise JudgeFailure(
            f"the judge's answer has {len(text)} characters; at most {LONGEST_ANSWER} are read",
            "invalid_json",
        )
    body = text.strip()
    if body.startswith("<think>"):
        _, closed, body = body.partition("</think>")
        if not closed:
            raise JudgeFailure("the judge's answer ends in the middle of its thoughts", "invalid_json")
    return body.strip()


def read_json(body: str) -> Any:
    """The JSON value of `body`, which may be in one code fence. Duplicate keys are refused. Takes linear time.

    Raises:
        JudgeFailure: `invalid_json`.
    """
    inside = body
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        language, _, inside = body[3:-3].partition("\n")
        inside = inside if language.strip().lower() in ("", "json") else body
    try:
        return load_json(inside, object_pairs_hook=unambiguous)
    except ValueError as error:
        raise JudgeFailure(f"the judge's answer is not one JSON object: {error}", "invalid_json") from None


def unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object hook for `json.loads` that refuses an object with duplicate keys.

    Raises:
        ValueError: a key appears twice.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key appears twice in one object")
    return fields
