"""Tables of an audit: the round and verdict of each slice, and what the marks prove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console

from pv_data.audit.decisions import SliceState
from pv_data.audit.evidence import Evidence, Group
from pv_data.audit.proven import Proven
from pv_judge.pages.blocks import Block, Column, Heading, Paragraph, Table, Tone
from pv_judge.pages.terminal import print_blocks

__all__ = ["by_question", "print_proven"]

BOUNDS = ("agree", "at least", "all at once", "by question", "labelled correct", "labelled wrong")


def print_proven(proven: Proven, console: Console) -> None:
    """Two tables: the rounds, and the bounds."""
    print_blocks(_blocks(proven), console)


def _blocks(proven: Proven) -> Iterator[Block]:
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
