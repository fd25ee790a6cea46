"""What a report says, block by block, before it becomes Markdown, a web page or a terminal's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pv_judge.pages.blocks import Block, Grid, Heading, Items, Paragraph, Picture
from pv_judge.pages.text import number, plain, plural
from pv_rl import __version__
from pv_runs.measures import HELD_OUT, Measure
from pv_runs.report.interval import MeanOfSeeds
from pv_runs.report.settings import Setting
from pv_runs.report.summary import Summary

__all__ = ["content", "runs_grid", "settings_grid"]

NOTHING = "-"


def content(summary: Summary) -> Iterator[Block]:
    """All of it; the first block is the title."""
    runs = summary.runs
    yield Heading(f"Report of {summary.source}")
    yield Paragraph(
        f"{plural(len(runs), 'run')} of {plural(len(summary.settings), 'setting')}, put together by pv-rl "
        f"{__version__}."
    )
    yield Heading("Settings")
    yield Paragraph(
        f"Mean over the seeds named, with a 95 % interval (Student's t) where there are two or more; {NOTHING} where "
        "there is none. Only runs that ended at the same step are averaged."
    )
    yield settings_grid(summary)
    if summary.notes:
        yield Items(summary.notes)
    yield Heading("Runs")
    yield Paragraph("Each run's own final values, whether it is in a mean above or not.")
    yield runs_grid(summary)
    yield Heading("Over time")
    yield Picture(
        "One colour a setting; thin lines are runs, the thick one is the mean of those that are averaged. A dotted "
        "line that ends in a cross is a run that is not."
    )
    yield Heading("What the numbers are")
    yield Items([_define(measure, key, summary.last) for measure, key in summary.keys.items()])


def settings_grid(summary: Summary) -> Grid:
    """A line a setting."""
    return Grid(
        leading=4,
        heads=[
            ("setting", ""),
            ("seeds", "in the mean"),
            ("runs", ""),
            ("step", "the last"),
            *_heads(summary),
        ],
        lines=[
            [
                setting.label,
                _seeds(setting),
                _states(setting),
                NOTHING if setting.step is None else str(setting.step),
                *(_mean(setting.means[measure.name], setting) for measure in summary.keys),
            ]
            for setting in summary.settings
        ],
    )


def runs_grid(summary: Summary) -> Grid:
    """A line a run."""
    return Grid(
        leading=5,
        heads=[
            ("setting", ""),
            ("run", ""),
            ("seed", ""),
            ("state", ""),
            ("step", "the last"),
            *_heads(summary),
        ],
        lines=[
            [
                setting.label,
                result.run.name,
                result.run.seed or NOTHING,
                result.run.state,
                NOTHING if result.run.log.last_step is None else str(result.run.log.last_step),
                *(_value(result.values[measure.name]) for measure in summary.keys),
            ]
            for setting in summary.settings
            for result in setting.results
        ],
    )


def _heads(summary: Summary) -> list[tuple[str, str]]:
    return [(measure.title, measure.unit) for measure in summary.keys]


def _seeds(setting: Setting) -> str:
    count = len(setting.averaged)
    seeds = ", ".join(result.run.seed or "unknown" for result in setting.averaged)
    return f"{count}: {plain(seeds, 60)}" if count else "0"


def _states(setting: Setting) -> str:
    states = Counter(result.run.state for result in setting.results)
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _value(value: float | None) -> str:
    return NOTHING if value is None else number(value)


def _mean(mean: MeanOfSeeds | None, setting: Setting) -> str:
    """`0.712 (0.650 to 0.774)`; behind it of how many runs, if some of the setting have no value."""
    if mean is None:
        return NOTHING
    interval = (
        NOTHING
        if mean.low is None or mean.high is None
        else f"{number(mean.low, mean.mean)} to {number(mean.high, mean.mean)}"
    )
    behind = "" if mean.number == len(setting.averaged) else f" of {plural(mean.number, 'run')}"
    return f"{number(mean.mean)} ({interval}){behind}"


def _define(measure: Measure, key: str, last: int) -> str:
    if measure.kind == "training":
        what = f"{key}, mean of the last {plural(last, 'step')} of a run"
    elif measure.kind == "total":
        what = f"{key}, sum over the steps of a run"
    elif key in HELD_OUT.values():
        what = f"val-core/.../{key.rpartition('/')[2]}/acc/mean@N, the last validation of a run"
    else:
        what = "mean of the accuracies on right and on wrong proofs, the last validation of a run"
    return f"{measure.title} ({measure.unit}): {what}"
