"""Stages: start, middle and end of the runs of a setting, with the mean over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pv_runs.measures import Measure
from pv_runs.report.interval import MeanOfSeeds, mean_of_seeds
from pv_runs.report.runs import Run
from pv_runs.report.settings import Setting

__all__ = ["STAGES", "Stage", "stages_of", "value_at", "windows"]

STAGES = ("start", "middle", "end")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A measure of a setting at one stage."""

    first: int
    """The first step that it is a mean over."""
    last: int
    """The last one; held out, it is the first."""
    mean: MeanOfSeeds | None
    """Over the setting's averaged runs that have a value; None if none has."""


def windows(steps: int) -> dict[str, tuple[int, int]]:
    """First and last step of each stage: a tenth of the run at its start, around its middle, at its end.

    Example: 30 steps: 1 to 3, 14 to 16, 28 to 30. 2 steps: 1, 1, 2.
    """
    width = max(1, round(steps / 10))
    middle = max(1, steps // 2) - (width - 1) // 2
    return {
        "start": (1, width),
        "middle": (middle, middle + width - 1),
        "end": (steps - width + 1, steps),
    }


def value_at(run: Run, key: str, first: int, last: int) -> float | None:
    """The mean over the steps `first` to `last` at which the run has a finite number; None without any."""
    series = run.log.series.get(key, {})
    known = [value for step, value in series.items() if first <= step <= last and math.isfinite(value)]
    return sum(known) / len(known) if known else None


def stages_of(setting: Setting, measure: Measure, key: str) -> dict[str, Stage]:
    """By stage; empty for a setting of which no run ended, or has the measure.

    Held out are the first validation, the one next to the middle and the last, of those that all averaged runs have.
    """
    if not setting.step:
        return {}
    runs = [result.run for result in setting.averaged if key in result.run.log.series]
    spans = _validations(runs, key, setting.step) if measure.kind == "held out" else windows(setting.step)
    return {name: _stage(runs, key, *span) for name, span in spans.items()} if runs else {}


def _validations(runs: Sequence[Run], key: str, steps: int) -> dict[str, tuple[int, int]]:
    common = set.intersection(*(set(run.log.series[key]) for run in runs)) if runs else set()
    if not common:
        return {}
    middle = min(common, key=lambda step: (abs(step - steps / 2), step))
    return {name: (step, step) for name, step in zip(STAGES, (min(common), middle, max(common)), strict=True)}


def _stage(runs: Sequence[Run], key: str, first: int, last: int) -> Stage:
    values = [value for run in runs if (value := value_at(run, key, first, last)) is not None]
    return Stage(first=first, last=last, mean=mean_of_seeds(values))
