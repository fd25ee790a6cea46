"""Command of the mechanism: trains every experiment, and writes the figure, the tables and the numbers."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, groupby
from pathlib import Path

from pv_judge.files import write_atomically
from pv_judge.pages.figure import check_figure
from pv_lab.mechanism.document import markdown, numbers
from pv_lab.mechanism.experiments import Experiment, experiments
from pv_lab.mechanism.figure import draw
from pv_lab.mechanism.outcome import Outcome, run_experiments
from pv_lab.mechanism.settings import Setting
from pv_rl.errors import ConfigError

__all__ = ["FILES", "show_mechanism", "train_all"]

FILES = ("mechanism.png", "mechanism.md", "mechanism.json")


def show_mechanism(
    *, out: Path, setting: Setting, eta: float, seeds: int, seed: int, processes: int
) -> float:
    """Write `FILES` to `out`, made if it is not there, and give the seconds that it took.

    Raises:
        PvRlError: something given is not what it should be, or matplotlib or scipy is missing.
    """
    began = time.perf_counter()
    check_figure("the figure of the mechanism")
    outcomes = train_all(setting=setting, eta=eta, seeds=seeds, seed=seed, processes=processes)
    picture, table, raw = draw(outcomes), markdown(outcomes), numbers(outcomes, seed)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in zip(FILES, (picture, table.encode(), raw.encode()), strict=True):
        write_atomically(out / name, lambda path, content=content: path.write_bytes(content))
    return time.perf_counter() - began


def train_all(*, setting: Setting, eta: float, seeds: int, seed: int, processes: int) -> list[Outcome]:
    """Every experiment, batch by batch, each batch with random numbers of its own: `processes` changes no number."""
    if seed < 0:
        raise ConfigError(f"seed={seed} starts no stream of random numbers; give a whole number of 0 or more")
    if processes < 1:
        raise ConfigError(f"processes={processes} train nothing; give 1 or more")
    todo = experiments(setting, eta, seeds)
    # what has the same number of steps is trained side by side, which is three times as fast as apart
    batches = [list(batch) for _, batch in groupby(todo, key=_kind_and_steps)]
    streams = [(seed, place) for place in range(len(batches))]
    if processes == 1:
        done = list(map(run_experiments, batches, streams))
    else:
        # spawn: a fork of a process in which torch has started threads may hang
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            done = list(pool.map(run_experiments, batches, streams))
    return list(chain.from_iterable(done))


def _kind_and_steps(experiment: Experiment) -> tuple[str, int]:
    return experiment.kind, experiment.arms[0].run.setting.train_steps
