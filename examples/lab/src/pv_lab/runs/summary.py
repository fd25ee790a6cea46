"""Summary of a lab's runs: that of `pv_runs.report`, with the shares of each kind of trace as further series."""

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
from pv_runs.report.runs import Run
from pv_runs.report.settings import label_runs
from pv_runs.report.summary import Summary, combine, read_runs
from pv_runs.run_folder import RunFolder

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
    runs = [_with_traces(run, path, silent, apart) for path, run in read_runs(folder).items()]
    labels = [label.removeprefix("loss_agg_mode=") for label in label_runs(runs, [MODE])]
    summary = combine(plain(folder), runs, labels, last=LAST, measures=(*MEASURES, *TRACES))
    return replace(summary, notes=(*summary.notes, *_notes(silent, apart)))


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
