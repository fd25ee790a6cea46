"""Runs of the same setting together: which of them are averaged, and what comes out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pv_judge.pages.text import natural
from pv_runs.measures import Measure
from pv_runs.metrics_log import Series
from pv_runs.report.interval import MeanOfSeeds, mean_of_seeds
from pv_runs.report.runs import Run

__all__ = ["Result", "Setting", "final_value", "group"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """A run with its final values."""

    run: Run
    values: Mapping[str, float | None]
    """By the measure's name; None where the run has not logged it."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Runs that differ in the seed only."""

    label: str
    results: tuple[Result, ...]
    """All, by seed."""
    averaged: tuple[Result, ...]
    """Those that ended well at `step`."""
    step: int | None
    """The last step of those that are averaged; None if none is."""
    means: Mapping[str, MeanOfSeeds | None]
    """By the measure's name, over `averaged`."""

    @property
    def others(self) -> list[Result]:
        """Those that are not averaged."""
        return [result for result in self.results if result not in self.averaged]


def group(
    runs: Sequence[Run], labels: Sequence[str], keys: Mapping[Measure, str], last: int
) -> tuple[Setting, ...]:
    """Settings in natural order.

    Averaged are the runs that are finished, or of which nobody says how they ended, and that reached the last step
    which any of these reached. A run that failed, was stopped, still runs or is shorter is shown alone.

    Args:
        runs: R runs.
        labels: (R,) setting of each.
        keys: measures to take, with the key of the log that each is read from.
        last: steps, see `final_value`.
    """
    by_label: dict[str, list[Result]] = {}
    for run, label in zip(runs, labels, strict=True):
        values = {measure.name: final_value(run, measure, key, last) for measure, key in keys.items()}
        by_label.setdefault(label, []).append(Result(run=run, values=values))
    return tuple(_setting(label, by_label[label]) for label in sorted(by_label, key=natural))


def _setting(label: str, results: list[Result]) -> Setting:
    results.sort(key=lambda result: (natural(result.run.seed or ""), natural(result.run.name)))
    ended = [result for result in results if result.run.state in ("finished", "unknown")]
    step = max((s for result in ended if (s := result.run.log.last_step) is not None), default=None)
    averaged = tuple(result for result in ended if step is not None and result.run.log.last_step == step)
    names = results[0].values
    known = {name: [v for result in averaged if (v := result.values[name]) is not None] for name in names}
    return Setting(
        label=label,
        results=tuple(results),
        averaged=averaged,
        step=step,
        means={name: mean_of_seeds(values) for name, values in known.items()},
    )


def final_value(run: Run, measure: Measure, key: str, last: int) -> float | None:
    """What a run came to; None where there is no finite number to say so.

    Args:
        run: read to its last step `S`.
        measure: training: the mean over steps `S - last + 1` to `S`, over those of them that have it. Held out: the
            last validation. Total: the sum over all steps.
        key: of the log.
        last: steps, 1 or more.
    """
    series: Series = run.log.series.get(key, {})
    finite = {step: value for step, value in series.items() if math.isfinite(value)}
    if measure.kind == "held out":
        return finite[max(series)] if series and max(series) in finite else None
    if measure.kind == "training":
        finite = {step: value for step, value in finite.items() if step > (run.log.last_step or 0) - last}
    if not finite:
        return None
    total = sum(finite.values())
    return total if measure.kind == "total" else total / len(finite)
