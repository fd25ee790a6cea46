"""Summary of a sweep: the runs of a folder, read, named and averaged by setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pv_judge.pages.text import plain
from pv_rl.errors import DataError
from pv_runs.measures import MEASURES, Measure, keys_of
from pv_runs.report.notes import take_notes
from pv_runs.report.runs import Run, read_run
from pv_runs.report.settings import Setting, group, label_runs
from pv_runs.run_folder import find_runs

__all__ = ["Summary", "combine", "read_runs", "summarise"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The runs of a folder, by setting."""

    source: str
    """The folder that was given."""
    last: int
    """Steps over which a final value of training is a mean."""
    keys: Mapping[Measure, str]
    """Measures that some run has, with the key of its log that each is read from in all runs."""
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]
    """What a reader has to know beside the numbers, a sentence or two each."""

    @property
    def runs(self) -> list[Run]:
        """All, in the order of the settings."""
        return [result.run for setting in self.settings for result in setting.results]


def read_runs(folder: Path, measures: Sequence[Measure] = MEASURES) -> dict[Path, Run]:
    """All runs below a folder, by path, with the series that the measures need.

    Raises:
        DataError: there is no run, or one cannot be read.
    """
    wanted, derived = keys_of(measures), [measure for measure in measures if measure.per_step]
    runs = {}
    for path in find_runs(folder):
        name = str(path.relative_to(folder))
        run = read_run(path, path.resolve().name if name == "." else name, wanted.__contains__)
        series = {measure.name: values for measure in derived if (values := measure.compute(run.log.series))}
        runs[path] = replace(run, log=replace(run.log, series={**run.log.series, **series}))
    return runs


def summarise(
    folder: Path, *, last: int = 5, by: Sequence[str] = (), measures: Sequence[Measure] = MEASURES
) -> Summary:
    """Read all runs of a folder and average them by setting.

    Args:
        folder: of a sweep, of a run, or of folders of these.
        last: steps over which a final value of training is a mean, 1 or more.
        by: keys that tell settings apart, see `label_runs`.
        measures: the columns.

    Raises:
        DataError: something in the folder, or an argument, is not what it should be.
    """
    if last < 1:
        raise DataError(f"--last is {last}; give a number of steps, 1 or more")
    runs = list(read_runs(folder, measures).values())
    return combine(plain(folder), runs, label_runs(runs, by), last=last, measures=measures)


def combine(
    source: str, runs: Sequence[Run], labels: Sequence[str], *, last: int, measures: Sequence[Measure]
) -> Summary:
    """Average runs by setting.

    Args:
        source: where the runs are from, to be shown.
        runs: R runs.
        labels: (R,) setting of each.
        last: as in `summarise`, likewise `measures`.
    """
    logged = [run.log.series for run in runs]
    keys = {measure: key for measure in measures if (key := measure.choose_key(logged)) is not None}
    settings = group(runs, labels, keys, last)
    notes = tuple(take_notes(settings, keys))
    return Summary(source=source, last=last, keys=keys, settings=settings, notes=notes)
