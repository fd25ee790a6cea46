"""A comparison of plans on a terminal, or as plain text."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from pv_data.audit.comparison import Comparison

__all__ = ["print_comparison"]


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Two tables: what is accepted, and what is read."""
    heads = [f"{100 * one:g}%" for one in comparison.agreements]

    accepted = _table("plan", "accepts with", *heads, "bound")
    for one in comparison.plans:
        last = one.plan.stages[-1]
        accepted.add_row(
            one.plan.name,
            f"{last.accept} of {last.checked}",
            *(f"{point.accept:.1%}" for point in one.at),
            f"{one.bound:.4f}",
        )
    _say(console, f"Accepted, of slices of {comparison.size:,} proofs whose true agreement is", style="bold")
    console.print(accepted)
    _say(
        console,
        f"bound: a slice whose agreement is lower is accepted with at most {100 * (1 - comparison.confidence):g}%. "
        '"accepts with" is the last look; a sequential plan accepts earlier. paper: 30 proofs in every round; '
        '"30 at the end": only to accept. curtailed: stopped once the outcome is certain.',
    )
    console.print()

    read = _table("plan", "most", *heads, "hours")
    for one in comparison.plans:
        read.add_row(
            one.plan.name,
            str(one.plan.most),
            *(f"{point.expected_checked:.1f}" for point in one.at),
            f"{comparison.hours(one.plan.most):.1f}",
        )
    _say(console, "Proofs read on average, at these agreements", style="bold")
    console.print(read)
    draws = f"from {comparison.size:,} without replacement" if comparison.finite else "independently"
    _say(
        console,
        f"hours: for the most proofs, at {comparison.minutes:g} human minutes each. Proofs are taken to be drawn "
        f"{draws}; several of one question say less than as many of different questions.",
    )


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 else "right", no_wrap=place > 0)
    return table


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, highlight=False)
