"""Audit tables on a terminal: a comparison of plans, and what the marks of a run prove."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from pv_data.audit.comparison import Comparison
from pv_data.audit.evidence import Evidence, Group, Proven

__all__ = ["by_question", "print_comparison", "print_proven"]


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
    _print(
        console, f"Accepted, of slices of {comparison.size:,} proofs whose true agreement is", style="bold"
    )
    console.print(accepted)
    _print(
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
    _print(console, "Proofs read on average, at these agreements", style="bold")
    console.print(read)
    draws = f"from {comparison.size:,} without replacement" if comparison.finite else "independently"
    _print(
        console,
        f"hours: for the most proofs, at {comparison.minutes:g} human minutes each. Proofs are taken to be drawn "
        f"{draws}; several of one question say less than as many of different questions.",
    )


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 else "right", no_wrap=place > 0)
    return table


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, highlight=False)


def print_proven(proven: Proven, console: Console) -> None:
    """Two tables: the rounds, and the bounds."""
    heads = ("labels", "round", "agree", "gate", "to read", "verdict")
    standing = Table(Column("slice", overflow="fold"), *heads)
    for name, state in sorted(proven.states.items()):
        standing.add_row(
            *(escape(name), str(state.size), str(state.round), f"{state.agree} of {state.checked}"),
            *(f"{state.gate:.0%}", str(state.missing), state.verdict),
        )
    console.print(standing)
    audited = proven.audited
    if not audited.slices:
        return
    bounds = Table(
        Column("slice", overflow="fold"),
        *("agree", "at least", "all at once", "by question", "labelled correct", "labelled wrong"),
        title=f"What the marks prove, with {audited.confidence:.0%} confidence",
        title_justify="left",
    )
    for name, group in audited.slices.items():
        whole = group.checked == proven.states[name].size
        bounds.add_row(escape(name), *_cells(group, proven.classes[name], whole))
    bounds.add_section()
    for name, found in (("all audited", audited), ("accepted", proven.accepted)):
        if found is not None:
            bounds.add_row(name, *_cells(found.pooled, found.classes))
    console.print(bounds)
    console.print(_notes(audited), highlight=False, markup=False)


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
        "proofs of one question hang together (approximate). accepted: chosen by these same marks, so a little too "
        "high."
    )
