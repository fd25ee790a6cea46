"""Summary of a lab's runs, as `pv_runs.report` groups them, with statistics of their traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pv_judge.pages.text import plain
from pv_lab.runs.measures import TRACES, trace_key
from pv_lab.runs.plan import MODE
from pv_lab.runs.traces import SHARES, read_traces
from pv_rl.errors import DataError
from pv_runs.hydra_record import look_up
from pv_runs.measures import MEASURES
from pv_runs.report.labels import label_runs
from pv_runs.report.notes import take_notes
from pv_runs.report.runs import Run, read_run
from pv_runs.report.settings import group
from pv_runs.report.summary import Summary
from pv_runs.run_folder import RunFolder, find_runs

__all__ = ["LAST", "summarise_lab"]

LAST = 3
"""Steps over which a final value is a mean, in the tables that are as `pv-rl report` has them."""
LIMIT = "data.max_response_length"


def summarise_lab(folder: Path) -> Summary:
    """Read all runs of a folder, with the shares of their traces as series beside verl's.

    Raises:
        DataError: something in the folder is not what it should be, or a run is none of the lab's.
    """
    silent: list[str] = []
    apart: list[str] = []
    runs = []
    for path in find_runs(folder):
        name = path.resolve().name if path == folder else str(path.relative_to(folder))
        runs.append(_with_traces(read_run(path, name), path, silent, apart))
    logged = [run.log.series for run in runs]
    measures = (*MEASURES, *TRACES)
    keys = {measure: key for measure in measures if (key := measure.choose_key(logged)) is not None}
    labels = [label.removeprefix("loss_agg_mode=") for label in label_runs(runs, [MODE])]
    settings = group(runs, labels, keys, LAST)
    return Summary(
        source=plain(folder),
        last=LAST,
        keys=keys,
        settings=settings,
        notes=(*take_notes(settings, keys), *_notes(silent, apart)),
    )


def _with_traces(run: Run, path: Path, silent: list[str], apart: list[str]) -> Run:
    """The run with the shares of its traces; its name is noted where there are none, or where words are no tokens."""
    limit = look_up(run.config, LIMIT)
    if limit is None or not limit.isdigit():
        raise DataError(
            f"{path} is no run of pv-rl lab run: its config has no {LIMIT}. pv-rl report takes any run of verl"
        )
    series = read_traces(RunFolder(path).rollouts, run.log.last_step or 0, int(limit))
    if not series and run.log.last_step:
        silent.append(run.name)
    logged = run.log.series.get("response_length/mean", {})
    if any(abs(logged.get(step, length) - length) > 0.5 for step, length in series.get("length", {}).items()):
        apart.append(run.name)
    kinds = {trace_key(name): series[name] for name in SHARES if name in series}
    return replace(run, log=replace(run.log, series={**run.log.series, **kinds}))


def _notes(silent: list[str], apart: list[str]) -> Iterator[str]:
    if silent:
        yield f"No traces in rollouts/, so that nothing is said of their kinds: {plain(', '.join(silent))}."
    if apart:
        yield (
            "Traces that are not as long as verl says, so that a word is not a token there and their shares mean "
            f"little: {plain(', '.join(apart))}. Are they runs of the lab?"
        )
