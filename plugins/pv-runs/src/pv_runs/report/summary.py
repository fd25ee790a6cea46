"""From a folder to everything that a report says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pv_judge.pages.text import plain
from pv_rl.errors import DataError
from pv_runs.measures import MEASURES, Measure
from pv_runs.report.labels import label_runs
from pv_runs.report.notes import take_notes
from pv_runs.report.runs import Run, read_run
from pv_runs.report.settings import Setting, group
from pv_runs.run_folder import find_runs

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The runs of a folder, by setting."""

    source: str
    """The folder that was given."""
    last: int
    """Steps over which a final value of training is a mean."""
    keys: Mapping[Measure, str]
    """Measures that some run has, with the key that each is read from in all runs."""
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]
    """What a reader has to know beside the numbers, a sentence or two each."""

    @property
    def runs(self) -> list[Run]:
        """All, in the order of the settings."""
        return [result.run for setting in self.settings for result in setting.results]


def summarise(folder: Path, *, last: int = 5, by: Sequence[str] = ()) -> Summary:
    """Read all runs of a folder and put them together.

    Args:
        folder: of a sweep, of a run, or of folders of these.
        last: steps over which a final value of training is a mean, 1 or more.
        by: keys that tell settings apart, see `label_runs`.

    Raises:
        DataError: something in the folder, or an argument, is not what it should be.
    """
    if last < 1:
        raise DataError(f"--last {last} is no number of steps; give 1 or more")
    runs = [read_run(path, _name(path, folder)) for path in find_runs(folder)]
    logged = [run.log.series for run in runs]
    keys = {measure: key for measure in MEASURES if (key := measure.choose_key(logged)) is not None}
    settings = group(runs, label_runs(runs, by), keys, last)
    return Summary(
        source=plain(folder),
        last=last,
        keys=keys,
        settings=settings,
        notes=tuple(take_notes(settings, keys)),
    )


def _name(path: Path, folder: Path) -> str:
    name = str(path.relative_to(folder))
    return path.resolve().name if name == "." else name
