"""Fluency judge: its prompt, and the parser of its answer. The trace may try to deceive the judge.

The trace stands between two lines with a mark that it cannot contain: a hash of the trace itself. Marks that a chat
template would take for its own (`<|im_end|>`) are broken up, so that a judge which is served by vLLM does not read the
end of the message out of them. The answer has to be one JSON object of exactly the form that was asked for; it is never
searched for in a longer text, where the trace might have put one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pv_judge.answer import JudgeFailure, Messages
from pv_judge.json_answer import read_json, without_thoughts
from pv_rl.errors import ConfigError

__all__ = ["KINDS", "Finding", "Fluency", "FluencyPrompt", "cleaned", "parse_fluency"]

KINDS = ("repetition", "local_loop", "malformed_meta_comment", "irrelevant_insertion", "abrupt_conclusion")
"""The anomalies that the judge may report: the paper's list (Section 5.2, LLM-based Fluency Judge)."""

# What some chat template takes for its own: <|im_end|>, <｜Assistant｜>, </s>, <<SYS>>, [INST], [gMASK], ]~b], <think>.
CONTROL = re.compile(r"<(?=[|｜<])|(?<=[|｜])>|<(?=/?\w{1,40}>)|\[(?=/?[A-Za-z_]{3,20}\])|\](?=~)")
MAX_QUOTE = 2000


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One anomaly that the judge reports."""

    kind: str
    """One of `KINDS`."""
    quote: str
    """What the judge says it copied from the trace. Untrusted."""


@dataclass(frozen=True, kw_only=True)
class Fluency:
    """The judge's answer."""

    fluent: bool
    anomalies: tuple[Finding, ...]
    """Empty if fluent, else at least one."""
    confidence: float
    """How sure the judge says it is, 0 to 1."""

    def vetoes(self, threshold: float) -> bool:
        """Whether a trace with this answer is vetoed."""
        return not self.fluent and self.confidence >= threshold


@dataclass(frozen=True, kw_only=True)
class FluencyPrompt:
    """The instructions: the system message, the same for every trace, so that a server can cache it."""

    name: str
    text: str

    @classmethod
    def load(cls, path: str | Path | None = None) -> FluencyPrompt:
        """Read a prompt file; ours if none is given.

        Raises:
            ConfigError: there is no such file, or nothing in it.
        """
        try:
            source = Path(path) if path is not None else files("pv_judge") / "prompts" / "fluency.txt"
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the judge's prompt {path} cannot be read: {error}") from error
        if not text.strip():
            raise ConfigError(f"the judge's prompt {path} is empty; see pv_judge/prompts/fluency.txt")
        return cls(name=source.name.removesuffix(".txt"), text=text)

    @property
    def hash(self) -> str:
        """16 hex digits of the text, of how the trace is fenced and of how an answer is read."""
        return hashlib.sha256(f"fence 1, answer 2\n{self.text}".encode()).hexdigest()[:16]

    @property
    def template(self) -> str:
        """Name and hash, for caches and ledgers."""
        return f"{self.name}@{self.hash}"

    def messages(self, trace: str, **material: str) -> Messages:
        """The request's messages for one trace.

        Args:
            trace: the trace. Without `material` the messages hold neither the problem, the proof nor the label.
            material: texts to show before the trace, each by a word for it, for example `problem` and `proof`.
        """
        trace, *further = (cleaned(text) for text in (trace, *material.values()))
        fence = "trace-" + hashlib.sha256("\0".join([trace, *further]).encode()).hexdigest()[:24]
        shown = (
            f"<{name} {fence}>\n{text}\n</{name} {fence}>\n"
            for name, text in zip(material, further, strict=True)
        )
        user = f"The mark is {fence}.\n{''.join(shown)}<{fence}>\n{trace}\n</{fence}>\nThe trace has ended. Answer now."
        return ({"role": "system", "content": self.text}, {"role": "user", "content": user})


def cleaned(text: str) -> str:
    """The text with the marks of chat templates broken up by a space, and without halves of surrogate pairs."""
    return CONTROL.sub(lambda match: match[0] + " ", text.encode("utf-8", "replace").decode())


def parse_fluency(text: str) -> Fluency:
    """Read an answer.

    It is one JSON object, which may stand in one code fence, behind `<think>...</think>` where the answer begins with
    `<think>`. Text before a lone `</think>` is part of the answer, and makes it unreadable.

    Args:
        text: the answer; at most `LONGEST_ANSWER` (400,000) characters are read, in linear time.

    Raises:
        JudgeFailure: `invalid_json` where it is no JSON or too long, `wrong_schema` where it is of another form or
            contradicts itself. Nothing is guessed: the trace's author would like us to.
    """
    answer = read_json(without_thoughts(text))
    problem = _problem(answer)
    if problem:
        raise JudgeFailure(f"the judge's answer is not of the form asked for: {problem}", "wrong_schema")
    findings = (
        Finding(kind=one["kind"], quote=one.get("quote", "")[:MAX_QUOTE]) for one in answer["anomalies"]
    )
    return Fluency(fluent=answer["fluent"], anomalies=tuple(findings), confidence=float(answer["confidence"]))


def _problem(answer: Any) -> str | None:
    if not isinstance(answer, Mapping) or set(answer) != {"fluent", "anomalies", "confidence"}:
        return "it has not exactly the keys fluent, anomalies and confidence"
    if not isinstance(answer["fluent"], bool):
        return "fluent is not true or false"
    confidence = answer["confidence"]
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        return "confidence is not a number from 0 to 1"
    anomalies = answer["anomalies"]
    if not isinstance(anomalies, list) or not all(_is_finding(one) for one in anomalies):
        return f"anomalies is not a list of objects with a kind ({', '.join(KINDS)}) and a quote"
    if answer["fluent"] == bool(anomalies):
        return "it is called fluent and has anomalies, or neither"
    return None


def _is_finding(one: Any) -> bool:
    return (
        isinstance(one, Mapping)
        and set(one) <= {"kind", "quote"}
        and one.get("kind") in KINDS
        and isinstance(one.get("quote", ""), str)
    )
