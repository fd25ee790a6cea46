"""Settings: runs that differ in the seed only, how a setting is named, and which of its runs are averaged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pv_judge.pages.text import natural, plain
from pv_rl.errors import DataError
from pv_runs.hydra_record import look_up
from pv_runs.measures import Measure
from pv_runs.report.interval import MeanOfSeeds, mean_of_seeds
from pv_runs.report.runs import Run

__all__ = ["Result", "Setting", "differences", "group", "is_numeric", "label_runs"]

NAMELESS = "no overrides"


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
        last: steps, see `Measure.final_value`.
    """
    by_label: dict[str, list[Result]] = {}
    for run, label in zip(runs, labels, strict=True):
        values = {
            measure.name: measure.final_value(run.log.series.get(key, {}), run.log.last_step, last)
            for measure, key in keys.items()
        }
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


def label_runs(runs: Sequence[Run], by: Sequence[str] = ()) -> list[str]:
    """A label a run; runs with the same one are of the same setting.

    A label has the overrides in which runs differ, `eta=0.3` or `recipe=balanced, eta=0.3`, a key without what stands
    before its last dot where that is clear. A run that has none of them goes by its loss_agg_mode.

    Args:
        runs: all of the report.
        by: keys to take instead of those in which runs differ; from the config where a run does not override them.

    Raises:
        DataError: no run has a key of `by`.
    """
    for key in by:
        if not any(_value(run, key) is not None for run in runs):
            raise DataError(
                f"--by {key}: no run's overrides or config has this key. "
                f"Overridden are: {', '.join(_overridden(runs)) or 'none'}"
            )
    keys = list(dict.fromkeys(by)) or [
        key for key in _overridden(runs) if len({run.overrides.get(key) for run in runs}) > 1
    ]
    names = {key: key if " " in key else key.rpartition(".")[2] for key in keys}
    short = {key: name if list(names.values()).count(name) == 1 else key for key, name in names.items()}
    labels = []
    for run in runs:
        values = {key: _value(run, key) if by else run.overrides.get(key) for key in keys}
        parts = [f"{short[key]}={value}" for key, value in values.items() if value is not None]
        labels.append(plain(", ".join(parts) or run.mode or NAMELESS))
    return labels


def is_numeric(labels: Sequence[str]) -> bool:
    """Whether labels are values of one number, `eta=0`, `eta=0.3`, so that they have an order."""
    halves = [label.rpartition("=") for label in labels]
    try:
        numbers = [float(value) for _, _, value in halves]
    except ValueError:
        return False
    keys = {key for key, _, _ in halves}
    return len(keys) == 1 and len(set(numbers)) > 1


def differences(runs: Sequence[Run]) -> list[str]:
    """Keys of the config in which runs differ, but for seeds, folders and names, which differ in every run."""
    keys = dict.fromkeys(key for run in runs for key in run.config)
    return [key for key in keys if not _of_each(key) and len({run.config.get(key) for run in runs}) > 1]


def _value(run: Run, key: str) -> str | None:
    return run.overrides.get(key, look_up(run.config, key))


def _overridden(runs: Sequence[Run]) -> list[str]:
    """In the order in which they first come."""
    return [key for key in dict.fromkeys(key for run in runs for key in run.overrides) if not _of_each(key)]


def _of_each(key: str) -> bool:
    """Whether a key is expected to differ from run to run."""
    name = key.rpartition(".")[2]
    return name in ("seed", "dir", "experiment_name") or name.endswith(("_seed", "_dir"))
