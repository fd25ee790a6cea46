"""Verdict format `verdict`: True or False, as `pv_rl.verdict.parse_verdict` reads it."""

from __future__ import annotations

from pathlib import Path

from pv_rl.rewards.base import read_label
from pv_rl.verdict import parse_verdict
from pv_verdicts.formats import Answer, Truth

__all__ = ["Verdict"]


class Verdict:
    """1 if the verdict is the label, else 0."""

    name = "verdict"
    truth: Truth = "label"
    grades: tuple[float, ...] = ()
    accept = 1.0
    prompt: Path | None = None

    def read(self, trace: str) -> Answer:
        return Answer(accepts=parse_verdict(trace))

    def read_truth(self, value: object) -> bool:
        return read_label(value)

    def score(self, answer: Answer, truth: float | int | bool) -> float:
        return float(answer.accepts is bool(truth))
