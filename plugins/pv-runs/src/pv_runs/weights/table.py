"""The summary on a terminal, or as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pv_runs.weights.summary import ModeSummary, Part, Summary

__all__ = ["FEW", "label", "print_summary"]

FEW = 20
"""Responses. Up to so many have a line each; more are shown by quarters of their length."""
PART = "responses with"


@dataclass(frozen=True, kw_only=True)
class Block:
    """Lines that hold two numbers for each mode."""

    heads: tuple[str, ...]
    """Headings of the columns before the numbers."""
    lines: Sequence[tuple[str, ...]]
    """Their cells, a line each."""
    numbers: dict[str, list[tuple[str, str]]]
    """By spec: weight and share of each line."""
    breaks: frozenset[int] = frozenset()
    """Lines that are followed by an empty one."""


def print_summary(summary: Summary, console: Console) -> None:
    """Print all of it. What is too wide for the console goes on in a further table, so that nothing is cut."""
    rollouts = summary.rollouts
    counted = f"{_plural(summary.responses, 'response')} of {_plural(summary.prompts, 'prompt')}"
    _say(console, f"{rollouts.source}: {counted}, {summary.tokens} {rollouts.unit}", style="bold")
    left_out = len(rollouts.lengths) - summary.responses
    if left_out:
        _say(console, f"{left_out} of length 0 count for nothing.")
    for note in summary.notes:
        _say(console, note)
    few = len(rollouts.lengths) <= FEW
    if few:
        _print_block(console, summary.modes, _responses(summary))
    parts = [part for part in summary.parts if part.kind != "length" or not few]
    if parts:
        _print_block(console, summary.modes, _parts(parts, summary.modes))
    _print_modes(console, summary)
    unit = rollouts.unit.removesuffix("s")
    _say(console, f"\nweight: of one {unit}; on a line of several responses, the mean of their {unit}s")
    _say(console, "share: of the update, weight x length over the mode's total; advantages come on top")


def label(spec: str) -> str:
    """A spec as people write it, without the scope that is the default."""
    return spec.removesuffix("@prompt")


def _responses(summary: Summary) -> Block:
    """A line for each response."""
    rollouts = summary.rollouts
    columns = {
        "prompt": [str(group + 1) for group in rollouts.groups],
        "length": list(map(str, rollouts.lengths)),
    }
    if rollouts.verdicts is not None:
        columns["verdict"] = ["-" if verdict is None else str(verdict) for verdict in rollouts.verdicts]
    if rollouts.scores is not None:
        columns["score"] = ["-" if score is None else f"{score:g}" for score in rollouts.scores]
    return Block(
        heads=tuple(columns),
        lines=list(zip(*columns.values(), strict=True)),
        numbers={
            mode.spec: [(_number(w), _percent(s)) for w, s in zip(mode.weights, mode.shares, strict=True)]
            for mode in summary.modes
        },
    )


def _parts(parts: Sequence[Part], modes: Sequence[ModeSummary]) -> Block:
    """A line for each part, with a gap between kinds."""
    return Block(
        heads=(PART, "count"),
        lines=[(part.name, str(part.responses)) for part in parts],
        numbers={
            mode.spec: [(_number(part.weight[mode.spec]), _percent(part.share[mode.spec])) for part in parts]
            for mode in modes
        },
        breaks=frozenset(
            row for row, (this, following) in enumerate(pairwise(parts)) if this.kind != following.kind
        ),
    )


def _print_block(console: Console, modes: Sequence[ModeSummary], block: Block) -> None:
    """With as many modes side by side as there is room for."""
    rest = list(modes)
    while rest:
        fit = 1
        while fit < len(rest) and _width(_side_by_side(rest[: fit + 1], block)) <= console.width:
            fit += 1
        _print_table(console, _side_by_side(rest[:fit], block))
        rest = rest[fit:]


def _side_by_side(modes: Sequence[ModeSummary], block: Block) -> Table:
    table = _table()
    for head in block.heads:
        table.add_column(Text(f"\n{head}"), justify="left" if head == PART else "right")
    for mode in modes:
        table.add_column(Text(f"{label(mode.spec)}\nweight"), justify="right")
        table.add_column(Text("\nshare"), justify="right")
    for row, cells in enumerate(block.lines):
        table.add_row(
            *map(Text, (*cells, *(cell for mode in modes for cell in block.numbers[mode.spec][row])))
        )
        if row in block.breaks:
            table.add_row()
    return table


def _print_modes(console: Console, summary: Summary) -> None:
    """One line a mode. The mass has a column where it is not 1 for all, as it is for grpo, dapo and balanced."""
    with_mass = any(abs(mode.mass - 1) > 1e-6 for mode in summary.modes)
    table = _table()
    table.add_column("mode")
    for head in ("effective responses", "largest share", *(["mass of the update"] if with_mass else [])):
        table.add_column(head, justify="right")
    for mode in summary.modes:
        cells = [label(mode.spec), f"{mode.effective_responses:.1f} of {summary.responses}"]
        cells += [_percent(mode.largest_share), *([_number(mode.mass)] if with_mass else [])]
        table.add_row(*map(Text, cells))
    _print_table(console, table)


def _table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")


def _print_table(console: Console, table: Table) -> None:
    console.print()
    console.print(table, crop=False, overflow="ignore", no_wrap=True, width=max(console.width, _width(table)))


def _width(table: Table) -> int:
    """Of the table if nothing is cut."""
    unlimited = Console(width=100_000)
    return unlimited.measure(table).maximum


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)


def _number(value: float) -> str:
    return "0" if value == 0 else f"{value:.3g}"


def _percent(share: float) -> str:
    if share == 0:
        return "0%"
    return f"{100 * share:.1f}%" if share >= 0.001 else f"{100 * share:.1g}%"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
