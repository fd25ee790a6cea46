"""Audit tables: a comparison of plans, what the marks of a run prove, and how far its readers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from pv_data.audit.comparison import Comparison, PlanFigures
from pv_data.audit.evidence import Evidence, Group, Proven
from pv_data.audit.marks import SliceState
from pv_judge.pages.blocks import Block, Column, Heading, Paragraph, Table, Tone
from pv_judge.pages.terminal import print_blocks
from pv_judge.pages.text import coefficient, estimate, percent, plain, plural

if TYPE_CHECKING:
    from pv_data.audit.readers import (  # numpy, which the command would load at its start
        Pair,
        Reader,
        Readers,
    )

__all__ = ["by_question", "print_comparison", "print_proven", "print_readers"]

BOUNDS = ("agree", "at least", "all at once", "by question", "labelled correct", "labelled wrong")


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Two tables: what is accepted, and what is read."""
    print_blocks(_comparison_blocks(comparison), console)


def _comparison_blocks(comparison: Comparison) -> Iterator[Block]:
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


def print_proven(proven: Proven, console: Console) -> None:
    """Two tables: the rounds, and the bounds."""
    print_blocks(_proven_blocks(proven), console)


def _proven_blocks(proven: Proven) -> Iterator[Block]:
    standing: list[Column[tuple[str, SliceState]]] = [
        Column("slice", lambda row: row[0], left=True, wrap=True),
        Column("labels", lambda row: str(row[1].size)),
        Column("round", lambda row: str(row[1].round)),
        Column("agree", lambda row: f"{row[1].agree} of {row[1].checked}"),
        Column("gate", lambda row: f"{row[1].gate:.0%}"),
        Column("to read", lambda row: str(row[1].missing)),
        Column("verdict", lambda row: row[1].verdict, left=True),
    ]
    yield Table.of(standing, sorted(proven.states.items()))
    audited = proven.audited
    if not audited.slices:
        return
    lines = [
        (name, _cells(group, proven.classes[name], group.checked == proven.states[name].size))
        for name, group in audited.slices.items()
    ]
    lines += [
        (name, _cells(found.pooled, found.classes))
        for name, found in (("all audited", audited), ("accepted", proven.accepted))
        if found is not None
    ]
    bounds: list[Column[tuple[str, list[str]]]] = [
        Column("slice", lambda row: row[0], left=True, wrap=True),
        *(Column(head, lambda row, place=place: row[1][place]) for place, head in enumerate(BOUNDS)),
    ]
    yield Heading(f"What the marks prove, with {audited.confidence:.0%} confidence")
    tones: dict[int, Tone] = dict.fromkeys(range(len(audited.slices), len(lines)), "strong")
    yield Table.of(bounds, lines, tones=tones)
    yield Paragraph(_notes(audited))


def print_readers(found: Readers, console: Console) -> None:
    """The people, and where several read the same proofs, how far they agree."""
    if found.people:
        print_blocks(_reader_blocks(found), console)


def _reader_blocks(found: Readers) -> Iterator[Block]:
    people: list[Column[Reader]] = [
        Column("reader", lambda one: plain(one.auditor), left=True, wrap=True),
        Column("proofs", lambda one: str(one.marks)),
        Column("cannot tell", lambda one: str(one.cannot_tell)),
        Column("as third", lambda one: str(one.third)),
        Column("with a time", lambda one: str(one.timed)),
        Column("hours", lambda one: f"{one.hours:.1f}" if one.timed else "-"),
        Column("minutes each", lambda one: "-" if one.minutes is None else f"{one.minutes:.1f}"),
    ]
    yield Heading("Who read them")
    yield Table.of(people, found.people)
    if not found.pairs and not found.in_dispute and not found.unsettled:
        return
    pairs: list[Column[Pair]] = [
        Column("both read blind", lambda one: " and ".join(map(plain, one.auditors)), left=True, wrap=True),
        Column("proofs", lambda one: str(one.agreement.number)),
        Column("alike %", lambda one: percent(one.agreement.raw.value)),
        Column("Cohen's kappa", lambda one: estimate(*vars(one.agreement.kappa).values(), coefficient)),
    ]
    yield Table.of(pairs, found.pairs)
    numbers = ", ".join(f"{number} by {people}" for people, number in found.by_number.items())
    yield Paragraph(
        f"Krippendorff's alpha of all who read blind: {coefficient(found.blind.alpha)}, on "
        f"{plural(found.blind.items, 'proof')}. Proofs by readers: {numbers}. For a third reader: {found.in_dispute}; "
        f"left without an answer, and not counted: {found.unsettled}."
    )


def by_question(group: Group, *, whole: bool = False) -> str:
    """The bound that knows of questions; `-` where there are fewer than two, or where the slice was read `whole`."""
    return "-" if group.clustered is None or whole else f"{group.clustered.lower:.3f}"


def _cells(group: Group, classes: Mapping[str, Group], whole: bool = False) -> list[str]:
    together = "-" if group.lower_together is None else f"{group.lower_together:.3f}"
    return [
        f"{group.agree} of {group.checked}",
        f"{group.lower:.3f}",
        together,
        by_question(group, whole=whole),
        *(_class(classes[name]) for name in ("correct", "wrong")),
    ]


def _class(group: Group) -> str:
    return f"{group.agree} of {group.checked}, {group.lower:.3f}" if group.checked else "-"


def _notes(audited: Evidence) -> str:
    return (
        "at least: exact, for proofs drawn one by one; of a slice, about the proofs that it has; pooled and by class, "
        f"as for an endless supply. all at once: all {len(audited.slices)} slices together (Bonferroni). by question: "
        "proofs of one question are correlated (approximate). accepted: chosen by these same marks, so a little too "
        "high."
    )
