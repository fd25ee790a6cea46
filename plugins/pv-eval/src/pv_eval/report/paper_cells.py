"""Cells of the paper's tables, each a measured number beside the printed one, and such a table as blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pv_eval.intervals import Estimate
from pv_eval.report.paper_runs import Missing, Run, Runs
from pv_judge.pages.blocks import Block, Column, Heading, Items, Paragraph, Table
from pv_judge.pages.text import MISSING, percent, plain, points

__all__ = [
    "NONE",
    "Cell",
    "Lacks",
    "Line",
    "PaperTable",
    "blocks_of",
    "gain_over",
    "label_of",
    "missing_lines",
    "unpaired",
]

NONE = Estimate(value=math.nan)
LONGEST = 500
"""Characters of a verifier's name; shorter ones stay whole, since their ends may be what tells them apart."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A measured number beside the printed one. Measured ones are shares, printed ones percent and points."""

    measured: Estimate = NONE
    gain: Estimate = NONE
    """Over the base model."""
    paper: float | None = None
    paper_gain: float | None = None


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row of a table."""

    label: str
    row: str
    """The paper's row that it is beside; empty for one that the paper does not have."""
    cells: Mapping[str, Cell]
    """By the column's name."""
    group: str = ""
    """The part of the table that the row is in."""


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """One of the paper's tables."""

    name: str
    title: str
    text: str
    """What its numbers are."""
    rows: str
    """Title of the column that names the rows."""
    columns: Mapping[str, tuple[str, str]]
    """By the column's name, its title over the measured and over the printed numbers; empty where none are printed."""
    lines: Sequence[Line]
    missing: Sequence[Missing]
    notes: Sequence[str] = ()


@dataclass
class Lacks:
    """What a table lacks, each once, in order."""

    missing: dict[Missing, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def votes(self, verifier: str, set_name: str) -> None:
        """Votes on a set."""
        self.missing[Missing(verifier, set_name)] = None

    def base(self, runs: Runs, run: Run) -> None:
        """The base model of a run's verifier, or its votes."""
        if base := runs.models[run.verifier].base:
            self.votes(runs.resolve(base), run.set_name)
        else:
            self.notes[f"{run.verifier} has no gain: --models FILE has to give its base model."] = None


def gain_over(runs: Runs, base: Run | None, run: Run | None) -> Estimate:
    """Accuracy of a run less that of a base: on the same pairs, or without an interval where these differ."""
    if base is None or run is None:
        return NONE
    pair = runs.paired(base, run)
    return runs.gain(pair) if pair else unpaired(runs.accuracy(base.counts), runs.accuracy(run.counts))


def unpaired(first: Estimate, second: Estimate) -> Estimate:
    """Second less first."""
    return Estimate(value=second.value - first.value, note="not on the same pairs")


def label_of(verifier: str, tag: str, row: str) -> str:
    """A row's label: the verifier, and the paper's row where it has another name."""
    return plain(verifier, LONGEST) + tag + (f" (paper: {row})" if row not in ("", verifier) else "")


def blocks_of(table: PaperTable) -> Iterator[Block]:
    """The table with its title, and below it what is missing."""
    yield Heading(table.title)
    yield Paragraph(table.text)
    columns: list[Column[Line]] = [Column(table.rows, lambda line: line.label, left=True)]
    for name, (measured, paper) in table.columns.items():
        columns.append(
            Column(plain(measured, LONGEST), lambda line, name=name: _measured(line, name), "measured, %")
        )
        if paper:
            columns.append(Column(paper, lambda line, name=name: _paper(line, name), "paper, %"))
    lines: list[Line] = []
    for line in table.lines:
        if line.group and line.group not in (one.group for one in lines):
            lines.append(Line(label=line.group, row="", cells={}, group=line.group))
        lines.append(line)
    yield Table.of(
        columns, lines, tones={place: "strong" for place, line in enumerate(lines) if not line.cells}
    )
    lacking = [*missing_lines(table.missing), *table.notes]
    if lacking:
        yield Items(lacking)


def _measured(line: Line, name: str) -> str:
    if not line.cells:
        return ""
    cell = line.cells[name]
    gain = "" if math.isnan(cell.gain.value) else f" ({points(cell.gain.value)})"
    return percent(cell.measured.value) + gain


def _paper(line: Line, name: str) -> str:
    if not line.cells:
        return ""
    cell = line.cells[name]
    gain = "" if cell.paper_gain is None else f" ({cell.paper_gain:+.1f})"
    return MISSING if cell.paper is None else f"{cell.paper:.1f}{gain}"


def missing_lines(missing: Sequence[Missing]) -> Iterator[str]:
    """A line a set."""
    for set_name in dict.fromkeys(one.set_name for one in missing):
        these = [one for one in missing if one.set_name == set_name]
        names = ", ".join(plain(one.verifier, LONGEST) for one in these)
        yield f"No votes of {names} on {set_name}. To make them" + (
            f": {these[0].command}" if len(these) == 1 else f", for each: {Missing('NAME', set_name).command}"
        )
