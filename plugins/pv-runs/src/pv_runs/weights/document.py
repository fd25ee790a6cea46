"""The summary as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pv_runs.weights.summary import Summary

__all__ = ["document"]


def document(summary: Summary) -> dict[str, Any]:
    """A tree of plain values.

    Keys: `source`, `notes`, `unit` of a length; `prompts`, `responses`, `tokens` that count; `modes`, each with
    `spec`, `mass`, `effective_responses`, `largest_share`, `weights` (B,) and `shares` (B,); `parts`, each with
    `kind`, `name`, `responses`, `tokens` and, by spec, `weight` and `share`; and for each of the B responses, in
    the order of the source, `prompt` (a number from 0), `length`, `verdict` and `score` (null without any).
    """
    rollouts = summary.rollouts
    return {
        "source": rollouts.source,
        "notes": list(summary.notes),
        "unit": rollouts.unit,
        "prompts": summary.prompts,
        "responses": summary.responses,
        "tokens": summary.tokens,
        "modes": [asdict(mode) for mode in summary.modes],
        "parts": [asdict(part) for part in summary.parts],
        "prompt": list(rollouts.groups),
        "length": list(rollouts.lengths),
        "verdict": None if rollouts.verdicts is None else list(rollouts.verdicts),
        "score": None if rollouts.scores is None else list(rollouts.scores),
    }
