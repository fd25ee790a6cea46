"""Content of a report: its tables and text as blocks, and the same as a document for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pv_judge.pages.blocks import Block, Column, Heading, Items, Paragraph, Picture, Table
from pv_judge.pages.text import MISSING, estimate, number, plain, plural
from pv_rl import __version__
from pv_runs.measures import HELD_OUT, Measure
from pv_runs.report.settings import Result, Setting, is_numeric
from pv_runs.report.summary import Summary

__all__ = ["PICTURE", "content", "document", "printed", "runs_table", "settings_table"]

PICTURE = "report"


def content(summary: Summary) -> Iterator[Block]:
    """All of it; the first block is the title."""
    yield Heading(f"Report of {summary.source}", level=1)
    yield Paragraph(f"{_counted(summary)}, by pv-rl {__version__}.")
    yield Heading("Settings")
    yield Paragraph(
        f"Mean over the seeds named, with a 95 % interval (Student's t) where there are two or more; {MISSING} where "
        "there is none. Only runs that ended at the same step are averaged."
    )
    yield settings_table(summary)
    if summary.notes:
        yield Items(summary.notes)
    yield Heading("Runs")
    yield Paragraph("Final values of each run, whether it is averaged above or not.")
    yield runs_table(summary)
    yield Heading("Over time")
    yield Picture(
        PICTURE,
        "One colour for each setting. Thin lines are runs; the thick line is the mean of those that are averaged. A "
        "dotted line that ends in a cross is a run that is not averaged.",
    )
    yield Heading("What the numbers are")
    yield Items([_define(measure, key, summary.last) for measure, key in summary.keys.items()])


def printed(summary: Summary) -> Iterator[Block]:
    """What a terminal shows: the table of settings and the notes."""
    yield Heading(f"{summary.source}: {_counted(summary)}", level=1)
    yield settings_table(summary)
    yield Paragraph("\nmean over seeds (95 % interval of Student's t)")
    yield Items(summary.notes)


def settings_table(summary: Summary) -> Table:
    """A row for each setting."""
    columns: list[Column[Setting]] = [
        Column("setting", lambda setting: setting.label, left=True),
        Column("seeds", _seeds, "in the mean", left=True),
        Column("runs", _states, left=True),
        Column("step", lambda setting: _step(setting.step), "the last", left=True),
        *(Column(one.title, _mean_of(one), one.unit) for one in summary.keys),
    ]
    return Table.of(columns, summary.settings)


def runs_table(summary: Summary) -> Table:
    """A row for each run."""
    columns: list[Column[tuple[Setting, Result]]] = [
        Column("setting", lambda row: row[0].label, left=True),
        Column("run", lambda row: row[1].run.name, left=True),
        Column("seed", lambda row: row[1].run.seed or MISSING, left=True),
        Column("state", lambda row: row[1].run.state, left=True),
        Column("step", lambda row: _step(row[1].run.log.last_step), "the last", left=True),
        *(Column(one.title, _value_of(one), one.unit) for one in summary.keys),
    ]
    return Table.of(
        columns, [(setting, result) for setting in summary.settings for result in setting.results]
    )


def _counted(summary: Summary) -> str:
    return f"{plural(len(summary.runs), 'run')} of {plural(len(summary.settings), 'setting')}"


def _step(step: int | None) -> str:
    return MISSING if step is None else str(step)


def _seeds(setting: Setting) -> str:
    seeds = ", ".join(result.run.seed or "unknown" for result in setting.averaged)
    return f"{len(setting.averaged)}: {plain(seeds, 60)}" if setting.averaged else "0"


def _states(setting: Setting) -> str:
    states = Counter(result.run.state for result in setting.results)
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _value_of(measure: Measure) -> Callable[[tuple[Setting, Result]], str]:
    def show(row: tuple[Setting, Result]) -> str:
        value = row[1].values[measure.name]
        return MISSING if value is None else (measure.show or number)(value)

    return show


def _mean_of(measure: Measure) -> Callable[[Setting], str]:
    def show(setting: Setting) -> str:
        """`0.712 (0.650 to 0.774)`; then of how many runs, if some of the setting have no value."""
        mean = setting.means[measure.name]
        if mean is None:
            return MISSING
        text = estimate(mean.mean, mean.low, mean.high, measure.show)
        text += f" ({MISSING})" if mean.low is None else ""
        return text if mean.number == len(setting.averaged) else f"{text} of {plural(mean.number, 'run')}"

    return show


def _define(measure: Measure, key: str, last: int) -> str:
    if measure.per_step is not None:
        key = f"computed of {', '.join(measure.keys)}"
    if measure.kind == "training":
        what = f"{key}, mean of the last {plural(last, 'step')} of a run"
    elif measure.kind == "total":
        what = f"{key}, sum over the steps of a run"
    elif key in HELD_OUT.values():
        what = f"val-core/.../{key.rpartition('/')[2]}/acc/mean@N, the last validation of a run"
    else:
        what = "mean of the accuracies on right and on wrong proofs, the last validation of a run"
    return f"{measure.title} ({measure.unit}): {what}"


def document(summary: Summary) -> dict[str, Any]:
    """The report for a program; `to_json` writes it, with null for what is no finite number.

    Keys: `source`, `pv_rl` (version), `last`, `notes`, `numeric` (whether settings are values of one number);
    `measures`, by name with `title`, `unit`, `key` of verl's log and `kind` of the final value; `settings`, each with
    `label`, `runs`, `averaged` (names), `step` and `means` by measure (`mean`, `low`, `high`, `number`, or null);
    `runs`, each with `name`, `setting`, `averaged`, `seed`, `state`, `error`, `versions`, `mode`,
    `in_force` (by key that a resume changed: `from_step` and `value`), `step`,
    `values` by measure, and `series` by measure: `step` and `value`.
    """
    return {
        "source": summary.source,
        "pv_rl": __version__,
        "last": summary.last,
        "notes": summary.notes,
        "numeric": is_numeric([setting.label for setting in summary.settings]),
        "measures": {
            measure.name: {"title": measure.title, "unit": measure.unit, "key": key, "kind": measure.kind}
            for measure, key in summary.keys.items()
        },
        "settings": [
            {
                "label": setting.label,
                "runs": [result.run.name for result in setting.results],
                "averaged": [result.run.name for result in setting.averaged],
                "step": setting.step,
                "means": setting.means,
            }
            for setting in summary.settings
        ],
        "runs": [
            _run(result, setting, summary) for setting in summary.settings for result in setting.results
        ],
    }


def _run(result: Result, setting: Setting, summary: Summary) -> dict[str, Any]:
    run = result.run
    return {
        "name": run.name,
        "setting": setting.label,
        "averaged": result in setting.averaged,
        **{key: getattr(run, key) for key in ("seed", "state", "error", "versions", "mode")},
        "in_force": {
            key: [{"from_step": step, "value": value} for step, value in phases]
            for key, phases in run.in_force.items()
        },
        "step": run.log.last_step,
        "values": result.values,
        "series": {
            measure.name: {"step": list(series), "value": list(series.values())}
            for measure, key in summary.keys.items()
            if (series := run.log.series.get(key)) is not None
        },
    }
