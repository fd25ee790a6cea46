"""Output of `pv-rl weights`: the summary as blocks for a terminal, and as a document for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from pv_judge.pages.blocks import Block, Column, Heading, Paragraph, Table
from pv_judge.pages.text import MISSING, plural
from pv_runs.weights.summary import ModeSummary, Part, Summary

__all__ = ["FEW", "blocks", "document", "label"]

FEW = 20
"""Responses. Up to so many have a line each; more are shown by quarters of their length."""


def blocks(summary: Summary) -> Iterator[Block]:
    """Everything that a terminal shows."""
    rollouts = summary.rollouts
    counted = f"{plural(summary.responses, 'response')} of {plural(summary.prompts, 'prompt')}"
    yield Heading(f"{rollouts.source}: {counted}, {summary.tokens} {rollouts.unit}", level=1)
    left_out = len(rollouts.lengths) - summary.responses
    if left_out:
        yield Paragraph(f"{plural(left_out, 'response')} of length 0 left out.")
    yield from map(Paragraph, summary.notes)
    few = len(rollouts.lengths) <= FEW
    if few:
        yield _responses(summary)
    parts = [part for part in summary.parts if part.kind != "length" or not few]
    if parts:
        yield _parts(parts, summary.modes)
    yield _modes(summary)
    unit = rollouts.unit.removesuffix("s")
    yield Paragraph(f"\nweight: of one {unit}; on a line of several responses, the mean of their {unit}s")
    yield Paragraph("share: of the update, weight x length over the mode's total; advantages come on top")


def label(spec: str) -> str:
    """A spec as people write it, without the scope that is the default."""
    return spec.removesuffix("@prompt")


def document(summary: Summary) -> dict[str, Any]:
    """The summary for a program; `to_json` writes it.

    Keys: `source`, `notes`, `unit` of a length; `prompts`, `responses`, `tokens` that count; `modes`, each with
    `spec`, `mass`, `effective_responses`, `largest_share`, `weights` (B,) and `shares` (B,); `parts`, each with
    `kind`, `name`, `responses`, `tokens` and, by spec, `weight` and `share`; and for each of the B responses, in
    the order of the source, `prompt` (a number from 0), `length`, `verdict` and `score` (null without any).
    """
    rollouts = summary.rollouts
    return {
        "source": rollouts.source,
        "notes": summary.notes,
        "unit": rollouts.unit,
        "prompts": summary.prompts,
        "responses": summary.responses,
        "tokens": summary.tokens,
        "modes": summary.modes,
        "parts": summary.parts,
        "prompt": rollouts.groups,
        "length": rollouts.lengths,
        "verdict": rollouts.verdicts,
        "score": rollouts.scores,
    }


def _responses(summary: Summary) -> Table:
    """A line for each response."""
    rollouts = summary.rollouts
    verdicts, scores = rollouts.verdicts, rollouts.scores
    columns: list[Column[int]] = [
        Column("prompt", lambda row: str(rollouts.groups[row] + 1)),
        Column("length", lambda row: str(rollouts.lengths[row])),
    ]
    if verdicts is not None:
        columns.append(
            Column("verdict", lambda row: MISSING if verdicts[row] is None else str(verdicts[row]))
        )
    if scores is not None:
        columns.append(Column("score", lambda row: MISSING if scores[row] is None else f"{scores[row]:g}"))
    names = len(columns)
    for mode in summary.modes:
        columns += _of_mode(mode, lambda row, mode=mode: (mode.weights[row], mode.shares[row]))
    return Table.of(columns, range(len(rollouts.lengths)), repeated=names)


def _parts(parts: Sequence[Part], modes: Sequence[ModeSummary]) -> Table:
    """A line for each part, with a gap between kinds."""
    columns: list[Column[Part]] = [
        Column("responses with", lambda part: part.name, left=True),
        Column("count", lambda part: str(part.responses)),
    ]
    for mode in modes:
        columns += _of_mode(mode, lambda part, spec=mode.spec: (part.weight[spec], part.share[spec]))
    gap = [""] * len(columns)
    kinds = [Table.of(columns, of_kind).rows for _, of_kind in groupby(parts, lambda part: part.kind)]
    return Table(columns, [row for rows in kinds for row in (*rows, gap)][:-1], repeated=2)


def _of_mode(mode: ModeSummary, of: Callable[[Any], tuple[float, float]]) -> list[Column[Any]]:
    """Two columns: a mode's weight and share."""
    return [
        Column(label(mode.spec), lambda thing: _number(of(thing)[0]), "weight"),
        Column(label(mode.spec), lambda thing: _percent(of(thing)[1]), "share"),
    ]


def _modes(summary: Summary) -> Table:
    """A line for each mode. The mass has a column where it is not 1 for all, as it is for grpo, dapo and balanced."""
    columns: list[Column[ModeSummary]] = [
        Column("mode", lambda mode: label(mode.spec), left=True),
        Column("effective responses", lambda mode: f"{mode.effective_responses:.1f} of {summary.responses}"),
        Column("largest share", lambda mode: _percent(mode.largest_share)),
    ]
    if any(abs(mode.mass - 1) > 1e-6 for mode in summary.modes):
        columns.append(Column("mass of the update", lambda mode: _number(mode.mass)))
    return Table.of(columns, summary.modes)


def _number(value: float) -> str:
    return "0" if value == 0 else f"{value:.3g}"


def _percent(share: float) -> str:
    if share == 0:
        return "0%"
    return f"{100 * share:.1f}%" if share >= 0.001 else f"{100 * share:.1g}%"
