"""Content of the lab's report: order of lengths, stages, then the content of `pv-rl report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pv_judge.pages.blocks import Block, Grid, Heading, Items, Paragraph, Picture
from pv_judge.pages.text import number
from pv_lab.runs.measures import STAGED
from pv_lab.runs.order import Order, say_order
from pv_lab.runs.stages import STAGES, Stage, stages_of
from pv_lab.trace_shares import KINDS
from pv_runs.report.content import content
from pv_runs.report.summary import Summary

__all__ = ["lab_content", "order_lines", "stages_grid"]

NOTHING = "-"
CAPTION = (
    "One colour a weighting; thin lines are runs, one a seed, the thick one is the mean of those that are averaged and "
    "the band its 95 % interval (Student's t). A dotted line is a run that is not averaged."
)


def lab_content(summary: Summary, orders: Sequence[Order]) -> Iterator[Block]:
    """All of it; the first block is the title."""
    title, counted, *rest = content(summary)
    yield title
    yield counted
    yield Heading("The order of lengths")
    yield Items(order_lines(orders))
    yield Heading("Start, middle and end")
    yield Paragraph(
        "Mean over seeds with a 95 % interval (Student's t) where there are two or more. In training, a seed's value "
        "is the mean over the steps that are named; held out, the validation at the step that is named."
    )
    yield stages_grid(summary)
    yield Items([f"{name.replace('_', ' ')} traces: {what}" for name, what in KINDS.items()])
    yield from (Picture(CAPTION) if isinstance(block, Picture) else block for block in rest)


def order_lines(orders: Sequence[Order]) -> list[str]:
    """A line a stage, or one that says why there is none."""
    return [say_order(order) for order in orders] or [
        "Nothing can be said: it takes runs of two weightings from dapo to grpo, of scope prompt, that ended well at "
        "the same step, with a seed in common."
    ]


def stages_grid(summary: Summary) -> Grid:
    """A line a measure and weighting."""
    lines = [
        [
            measure.title,
            measure.unit,
            setting.label,
            *_cells(stages_of(setting, measure, summary.keys[measure])),
        ]
        for measure in STAGED
        if measure in summary.keys
        for setting in summary.settings
    ]
    return Grid(
        leading=4,
        heads=[
            ("measure", ""),
            ("unit", ""),
            ("weighting", ""),
            ("steps", ""),
            *((name, "") for name in STAGES),
        ],
        lines=lines,
    )


def _cells(stages: dict[str, Stage]) -> list[str]:
    if not stages:
        return [NOTHING] * (1 + len(STAGES))
    spans = (
        f"{one.first}" if one.first == one.last else f"{one.first}-{one.last}" for one in stages.values()
    )
    return [", ".join(spans), *map(_mean, stages.values())]


def _mean(stage: Stage) -> str:
    mean = stage.mean
    if mean is None:
        return NOTHING
    if mean.low is None or mean.high is None:
        return number(mean.mean)
    return f"{number(mean.mean)} ({number(mean.low, mean.mean)} to {number(mean.high, mean.mean)})"
