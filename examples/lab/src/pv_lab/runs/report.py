"""Command `pv-rl lab report`: the order of lengths, the stages, and then what `pv-rl report` shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from pv_judge.pages.blocks import Block, Column, Heading, Items, Paragraph, Picture, Table
from pv_judge.pages.figure import check_figure
from pv_judge.pages.terminal import print_blocks, print_line, standard_output
from pv_judge.pages.text import MISSING
from pv_judge.pages.writing import check_folder, write_pages
from pv_lab.runs.measures import STAGED
from pv_lab.runs.order import Order, find_orders, say_order
from pv_lab.runs.stages import STAGES, Stage, stages_of
from pv_lab.runs.summary import summarise_lab
from pv_lab.trace_shares import KINDS
from pv_runs.measures import Measure
from pv_runs.report.content import PICTURE, content, document
from pv_runs.report.figure import draw
from pv_runs.report.settings import Setting
from pv_runs.report.summary import Summary

__all__ = ["report_lab"]

CAPTION = (
    "One colour for each weighting. Thin lines are runs, one a seed; the thick line is the mean of those that are "
    "averaged, and the band is its 95 % interval (Student's t). A dotted line that ends in a cross is a run that is "
    "not averaged."
)


class Row(NamedTuple):
    """A measure of a weighting, by stage."""

    measure: Measure
    setting: Setting
    stages: dict[str, Stage]


def report_lab(folder: Path, *, out: Path | None = None, console: Console | None = None) -> None:
    """Read the runs of `pv-rl lab run`, print the stages and write report.md, .png, .html and .json, all or none.

    Args:
        folder: of the runs.
        out: where to write, created if need be; `folder/report` by default.
        console: standard output by default.

    Raises:
        PvRlError: something given or found is not what it should be.
        OSError: a file cannot be read or written.
    """
    target = out or folder / "report"
    if out is not None or target.exists():
        check_folder(target)
    check_figure("pv-rl lab report")
    summary = summarise_lab(folder)
    orders = find_orders(summary.settings)
    picture = draw(summary, [measure for measure in STAGED if measure in summary.keys], bands=True)
    files = write_pages(target, _content(summary, orders), _document(summary, orders), {PICTURE: picture})
    console = console or standard_output()
    lines = [*_order_lines(orders), *summary.notes]
    print_blocks([_table(summary), Paragraph("mean over seeds (95 % interval of Student's t)\n")], console)
    print_blocks([Items(lines)], console)
    for file in files:
        print_line(console, f"wrote {file}")


def _content(summary: Summary, orders: Sequence[Order]) -> Iterator[Block]:
    title, counted, *rest = content(summary)
    yield title
    yield counted
    yield Heading("The order of lengths")
    yield Items(_order_lines(orders))
    yield Heading("Start, middle and end")
    yield Paragraph(
        "Mean over seeds with a 95 % interval (Student's t) where there are two or more. In training, a seed's value "
        "is the mean over the steps that are named; held out, the validation at the step that is named."
    )
    yield _table(summary)
    yield Items([f"{name.replace('_', ' ')} traces: {what}" for name, what in KINDS.items()])
    yield from (Picture(PICTURE, CAPTION) if isinstance(block, Picture) else block for block in rest)


def _order_lines(orders: Sequence[Order]) -> list[str]:
    return [say_order(order) for order in orders] or [
        "No order: this needs finished runs of two or more weightings from dapo to grpo, of scope prompt, that ended "
        "at the same step and share a seed."
    ]


def _rows(summary: Summary) -> list[Row]:
    return [
        Row(measure, setting, stages_of(setting, measure, summary.keys[measure]))
        for measure in STAGED
        if measure in summary.keys
        for setting in summary.settings
    ]


def _table(summary: Summary) -> Table:
    """A row for each measure and weighting."""
    columns: list[Column[Row]] = [
        Column("measure", lambda row: row.measure.title, left=True),
        Column("unit", lambda row: row.measure.unit, left=True),
        Column("weighting", lambda row: row.setting.label, left=True),
        Column("steps", lambda row: ", ".join(map(_span, row.stages.values())) or MISSING, left=True),
        *(Column(name, lambda row, name=name: _mean(row.stages.get(name))) for name in STAGES),
    ]
    return Table.of(columns, _rows(summary), repeated=3)


def _span(stage: Stage) -> str:
    return f"{stage.first}" if stage.first == stage.last else f"{stage.first}-{stage.last}"


def _mean(stage: Stage | None) -> str:
    return MISSING if stage is None or stage.mean is None else str(stage.mean)


def _document(summary: Summary, orders: list[Order]) -> dict[str, Any]:
    """`pv_runs.report.content` with `stages` (by measure and weighting) and `order` (an object for each stage)."""
    stages: dict[str, dict[str, Any]] = {}
    for row in _rows(summary):
        stages.setdefault(row.measure.name, {})[row.setting.label] = row.stages
    order = [
        {
            **{key: value for key, value in asdict(one).items() if key != "differences"},
            "there": one.there,
            "differences": [
                {"longer": longer, "shorter": shorter, **asdict(mean)}
                for (longer, shorter), mean in one.differences.items()
            ],
        }
        for one in orders
    ]
    return document(summary) | {"stages": stages, "order": order}
