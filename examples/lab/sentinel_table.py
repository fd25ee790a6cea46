"""When the sentinel alarms on runs of the reference loop: `python -m pv_rl.lab.sentinel_table RUNS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from pv_rl.lab.many_runs import read_runs

from pv_rl.errors import PvRlError
from pv_rl.sentinel import SentinelConfig, Watcher

__all__ = ["Watched", "fall_of", "watch_run"]

FALL = 0.10
"""Of held-out balanced accuracy below the best so far: what an alarm should come before."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What the sentinel said of one run."""

    alarms: int
    first: int | None
    """Step of the first alarm."""
    fall: float | None
    """Step at which held-out balanced accuracy has fallen by `FALL`, between measurements on a straight line."""

    @property
    def lead(self) -> float | None:
        """Steps from the first alarm to the fall."""
        return None if self.first is None or self.fall is None else self.fall - self.first


def watch_run(rows: Sequence[Mapping[str, Any]], config: SentinelConfig) -> Watched:
    """Feed a watcher with the training rows of one run, in order."""
    watcher = Watcher(config)
    steps = []
    for row in sorted((row for row in rows if row["split"] == "train"), key=lambda row: row["step"]):
        steps += [alarm.step for alarm in watcher.observe(row["step"], _with_label(row))]
    held_out = sorted((row for row in rows if row["split"] == "held_out"), key=lambda row: row["step"])
    balanced = [(row["step"], (row["right_proofs"] + row["wrong_proofs"]) / 2) for row in held_out]
    return Watched(alarms=len(steps), first=min(steps, default=None), fall=fall_of(balanced))


def fall_of(measured: Sequence[tuple[int, float]]) -> float | None:
    """The step at which an accuracy is `FALL` below the best measured so far; None if it never is.

    Example: .6 at step 0, .8 at 10, .6 at 20: at step 15 it is .7.
    """
    best = 0.0
    for (step, value), (after, next_value) in pairwise(measured):
        best = max(best, value)
        if next_value <= best - FALL:
            return step + (after - step) * (value - (best - FALL)) / (value - next_value)
    return None


def _with_label(row: Mapping[str, Any]) -> dict[str, Any]:
    """The share of right proofs, for runs that were written down without it: from the reward and both accuracies."""
    difference = row["right_proofs"] - row["wrong_proofs"]
    if row.get("label_true") is not None or not abs(difference) > 1e-6:
        return dict(row)
    return {**row, "label_true": (row["reward"] - row["wrong_proofs"]) / difference}


def main(
    runs: Annotated[Path, typer.Argument(help="Folder of Parquet files of the reference loop.")],
    responses: Annotated[int, typer.Option(help="Responses a step.")] = 128,
    steps_per_false_alarm: Annotated[float, typer.Option(help="As in SentinelConfig.")] = 1000.0,
) -> None:
    """A line for each learning rate."""
    try:
        rows = read_runs(runs).to_pylist()
        config = SentinelConfig(responses=responses, steps_per_false_alarm=steps_per_false_alarm)
    except PvRlError as error:
        raise typer.BadParameter(str(error)) from error
    by_run: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        by_run.setdefault((row["lr"], row["p_true"], row["mode"], row["seed"]), []).append(row)
    typer.echo(
        "| rate | runs | steps | alarms | runs that fell | of those, 5 steps before or more | lead, median |"
    )
    typer.echo("|---|---|---|---|---|---|---|")
    for rate in sorted({key[0] for key in by_run}):
        of_rate = [of_run for key, of_run in by_run.items() if key[0] == rate]
        watched = [watch_run(of_run, config) for of_run in of_rate]
        steps = sum(row["split"] == "train" for of_run in of_rate for row in of_run)
        fallen = [one for one in watched if one.fall is not None]
        leads = [one.lead for one in fallen if one.lead is not None]
        early = f"{sum(lead >= 5 for lead in leads)} of {len(fallen)}" if fallen else "-"
        middle = f"{median(leads):.1f}" if leads else "-"
        typer.echo(
            f"| {rate:g} | {len(of_rate)} | {steps} | {sum(one.alarms for one in watched)} | {len(fallen)} | {early} "
            f"| {middle} |"
        )


if __name__ == "__main__":
    typer.run(main)
