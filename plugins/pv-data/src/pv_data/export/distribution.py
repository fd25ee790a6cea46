"""Composition of a set: the paper's table of its training data (arXiv appendix, "Data distribution"), for any set."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from pv_data.records import GROUND_TRUTH, Qpc, Slice
from pv_judge.pages.blocks import Column, Table
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.text import plain, plural

__all__ = ["GROUPS", "Distribution", "Line", "distribution", "no_formula"]


GROUPS = {
    "llm_aided": "LLM-aided",
    "human": "Human source",
    "auxiliary": "Auxiliary",
}
AUXILIARY = "naive_negative"
HEADS = ("group", "source", "model", "method", "positive", "negative")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A slice, or a sum of slices."""

    group: str
    """Of `GROUPS`."""
    source: str
    model: str
    method: str
    positive: int
    """Right proofs."""
    negative: int

    @property
    def total(self) -> int:
        return self.positive + self.negative


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The table."""

    lines: tuple[Line, ...]

    def sum(self, group: str | None = None) -> Line:
        """Of one group, or of all."""
        lines = [line for line in self.lines if group is None or line.group == group]
        return Line(
            group=group or "total",
            source="",
            model="",
            method="",
            positive=sum(line.positive for line in lines),
            negative=sum(line.negative for line in lines),
        )

    def to_csv(self) -> str:
        """One line a slice, without sums: what a program reads."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADS)
        for line in self.lines:
            writer.writerow([no_formula(str(getattr(line, head))) for head in HEADS])
        return text.getvalue()

    def to_markdown(self) -> str:
        """A table with a sum for each group and for all."""
        rows: list[tuple[Line, bool]] = []
        for group, title in GROUPS.items():
            lines = [line for line in self.lines if line.group == group]
            rows += [(line, False) for line in lines]
            if lines:
                rows.append(
                    (replace(self.sum(group), source=f"{title}, {plural(len(lines), 'combination')}"), True)
                )
        rows.append((replace(self.sum(), source=f"All, {plural(len(self.lines), 'combination')}"), True))
        sums = [number for number, (_, is_sum) in enumerate(rows) if is_sum]
        table = Table.of(COLUMNS, [line for line, _ in rows], tones=dict.fromkeys(sums, "strong"))
        return to_markdown([table])


COLUMNS: tuple[Column[Line], ...] = (
    Column("source", lambda line: plain(line.source), left=True),
    Column("model", lambda line: plain(line.model), left=True),
    Column("method", lambda line: plain(line.method), left=True),
    Column("positive", lambda line: f"{line.positive:,}"),
    Column("negative", lambda line: f"{line.negative:,}"),
    Column("total", lambda line: f"{line.total:,}"),
)


def distribution(rows: Iterable[Qpc], *, human_sources: Collection[str] = ()) -> Distribution:
    """Count triples.

    `auxiliary` is what the method `naive_negative` made; `human` are proofs that came with their problem, and all of
    `human_sources` (in the paper student work, whose augmented and translated copies it counts there); the rest is
    `llm_aided`.
    """
    return of_counts(Counter((row.slice, row.label) for row in rows), human_sources=human_sources)


def of_counts(counts: Counter[tuple[str, bool]], *, human_sources: Collection[str] = ()) -> Distribution:
    """The same from counts by slice and label."""
    lines = []
    for name in {name for name, _ in counts}:
        one = Slice.read(name)
        lines.append(
            Line(
                group=_group(one, human_sources),
                source=one.source,
                model=one.model,
                method=one.method,
                positive=counts[name, True],
                negative=counts[name, False],
            )
        )
    order = list(GROUPS)
    lines.sort(
        key=lambda line: (
            order.index(line.group),
            *map(str.casefold, (line.source, line.model, line.method)),
            line.source,
        )
    )
    return Distribution(lines=tuple(lines))


def _group(one: Slice, human_sources: Collection[str]) -> str:
    if one.method == AUXILIARY:
        return "auxiliary"
    return "human" if one.method == GROUND_TRUTH or one.source in human_sources else "llm_aided"


def no_formula(text: str) -> str:
    """The text, with a quote before what a spreadsheet would compute: texts and names are from outside. `-` is none."""
    runs = text[:1] in ("=", "+", "@", "\t", "\r") or (text[:1] == "-" and len(text) > 1)
    return f"'{text}" if runs else text
