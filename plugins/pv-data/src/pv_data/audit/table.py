"""Tables of `pv-data audit plan`: plans side by side, what they accept and how much is read."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from pv_data.audit.comparison import Comparison, PlanFigures
from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.terminal import print_blocks

__all__ = ["print_comparison"]


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Two tables: what is accepted, and what is read."""
    print_blocks(_blocks(comparison), console)


def _blocks(comparison: Comparison) -> Iterator[Block]:
    heads = list(enumerate(f"{100 * one:g}%" for one in comparison.agreements))
    name: Column[PlanFigures] = Column("plan", lambda one: one.plan.name, left=True)
    accepted: list[Column[PlanFigures]] = [
        name,
        Column("accepts with", lambda one: f"{one.plan.stages[-1].accept} of {one.plan.stages[-1].checked}"),
        *(Column(head, lambda one, place=place: f"{one.at[place].accept:.1%}") for place, head in heads),
        Column("bound", lambda one: f"{one.bound:.4f}"),
    ]
    read: list[Column[PlanFigures]] = [
        name,
        Column("most", lambda one: str(one.plan.most)),
        *(
            Column(head, lambda one, place=place: f"{one.at[place].expected_checked:.1f}")
            for place, head in heads
        ),
        Column("hours", lambda one: f"{comparison.hours(one.plan.most):.1f}"),
    ]
    yield Paragraph(f"Accepted, of slices of {comparison.size:,} proofs whose true agreement is", "strong")
    yield Table.of(accepted, comparison.plans)
    yield Paragraph(
        f"bound: a slice whose agreement is lower is accepted with at most {100 * (1 - comparison.confidence):g}%. "
        '"accepts with" is the last look; a sequential plan accepts earlier. paper: 30 proofs in every round; '
        '"30 at the end": only to accept. curtailed: stopped once the outcome is certain.'
    )
    yield Paragraph("\nProofs read on average, at these agreements", "strong")
    yield Table.of(read, comparison.plans)
    draws = f"from {comparison.size:,} without replacement" if comparison.finite else "independently"
    yield Paragraph(
        f"hours: for the most proofs, at {comparison.minutes:g} human minutes each. Proofs are taken to be drawn "
        f"{draws}; several of one question say less than as many of different questions."
    )
