"""Where the slices of an audit stand, and what its marks prove, on a terminal or as plain text."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from pv_data.audit.evidence import Evidence, Group
from pv_data.audit.proven import Proven

__all__ = ["by_question", "print_proven"]


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
