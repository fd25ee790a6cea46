"""When the sentinel alarms on runs of the reference loop: `python -m pv_lab.sentinel_table RUNS`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import typer

from pv_judge.files import write_atomically
from pv_lab.many_runs import read_runs
from pv_rl.errors import DataError, PvRlError
from pv_runs.sentinel import Alarm, AlarmPolicyConfig, SentinelConfig, Watcher

__all__ = ["Watched", "fall_of", "smoothed", "table", "watch_run"]

FALL = 0.10
"""Of held-out balanced accuracy below the best so far: what an alarm should come before."""
EARLY = 5
"""Steps before the fall that an alarm should come."""
REACH = 2
"""Steps to each side over which held-out accuracy is averaged: of a hundred proofs it scatters by 3 or 4 points."""
FAULTS = ("flip_right", "flip_wrong", "length_bonus")
HEAD = (
    *(
        "runs",
        "steps",
        "alarms",
        "false",
        "runs with one",
        "runs that fell",
        f"alarm {EARLY} steps before or more",
    ),
    *("lead, median (range)", "first signs", f"action due {EARLY} steps before or more"),
)
SEEDS = {"all": range(10**9), "tune": range(100), "confirm": range(100, 10**9)}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What the sentinel said of one run."""

    alarms: int
    false: int
    """Of them those before the fault of a run that has one; all of a run that never fell."""
    first: int | None
    """Step of the first alarm that is not false."""
    signs: tuple[str, ...]
    """That alarmed at that step."""
    due: int | None
    """Step at which an action would be due for the first time, by the defaults of `AlarmPolicyConfig`."""
    fall: float | None
    """Step at which held-out balanced accuracy has fallen by `FALL`, between measurements on a straight line."""

    @property
    def lead(self) -> float | None:
        """Steps from the first alarm to the fall."""
        return None if self.first is None or self.fall is None else self.fall - self.first

    @property
    def due_lead(self) -> float | None:
        """Steps from the action to the fall."""
        return None if self.due is None or self.fall is None else self.fall - self.due


def watch_run(rows: Sequence[Mapping[str, Any]], config: SentinelConfig) -> Watched:
    """Feed a watcher with the training rows of one run, in order."""
    watcher = Watcher(config)
    alarms: list[Alarm] = []
    for row in sorted((row for row in rows if row["split"] == "train"), key=lambda row: row["step"]):
        alarms += watcher.observe(row["step"], _with_label(row) | {"actor/lr": _rate(row)})
    held_out = sorted((row for row in rows if row["split"] == "held_out"), key=lambda row: row["step"])
    balanced = [(row["step"], (row["right_proofs"] + row["wrong_proofs"]) / 2) for row in held_out]
    fall, fault = fall_of(smoothed(balanced)), _fault(rows[0])
    true = [alarm for alarm in alarms if alarm.step >= fault]
    first = min((alarm.step for alarm in true), default=None)
    return Watched(
        alarms=len(alarms),
        false=len(alarms) if fall is None else len(alarms) - len(true),
        first=first,
        signs=tuple(alarm.sign for alarm in true if alarm.step == first),
        due=_due(true),
        fall=fall,
    )


def _fault(row: Mapping[str, Any]) -> int:
    """The first step of a run's fault; 0 for one that has none, or has it from the start."""
    return (row.get("fault_from") or 0) if any(row.get(name) for name in FAULTS) else 0


def _due(alarms: Sequence[Alarm]) -> int | None:
    rule = AlarmPolicyConfig()
    for alarm in alarms:
        recent = (one for one in alarms if 0 <= alarm.step - one.step < rule.within)
        if len({one.family for one in recent}) >= rule.agree:
            return alarm.step
    return None


def smoothed(measured: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each value as the mean of those at most `REACH` steps away, so that the best of many is not the luckiest.

    Measurements ten steps apart stay as they are. Example: .6, .8, .7 at steps 1, 2, 3 are .7 each.
    """
    return [
        (step, mean(value for other, value in measured if abs(other - step) <= REACH)) for step, _ in measured
    ]


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


def _rate(row: Mapping[str, Any]) -> float:
    """The learning rate of the next step, which is the one that verl logs, as the loop raises it in a warm-up."""
    rise = row.get("lr_warm_up") or 0
    return row["lr"] * (min(1.0, (row["step"] + 1) / rise) if rise else 1.0)


def table(watched: Mapping[str, Sequence[tuple[int, Watched]]]) -> str:
    """A line for each kind of runs, given as (steps, what was said) of each run."""
    lines = ["| runs of | " + " | ".join(HEAD) + " |", "|---|" + "---|" * len(HEAD)]
    for name, runs in watched.items():
        said = [one for _, one in runs]
        fallen = [one for one in said if one.fall is not None]
        leads = [one.lead for one in fallen if one.lead is not None]
        signs = sorted({sign for one in fallen for sign in one.signs})
        cells = [
            *(len(runs), sum(steps for steps, _ in runs), sum(one.alarms for one in said)),
            *(sum(one.false for one in said), sum(one.alarms > 0 for one in said), len(fallen)),
            _early(leads, len(fallen)),
            f"{median(leads):.1f} ({min(leads):.1f} to {max(leads):.1f})" if leads else "-",
            ", ".join(f"`{sign}`" for sign in signs) or "-",
            _early([one.due_lead for one in fallen if one.due_lead is not None], len(fallen)),
        ]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _early(leads: Iterable[float], of: int) -> str:
    return f"{sum(lead >= EARLY for lead in leads)} of {of}" if of else "-"


def _write_runs(path: Path, runs: Mapping[tuple[Any, ...], Watched], names: Sequence[str]) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow([*names, "alarms", "false", "first", "signs", "due", "fall", "lead"])
            for key, one in runs.items():
                numbers = (None if value is None else round(value, 2) for value in (one.fall, one.lead))
                said = (one.alarms, one.false, one.first, " ".join(one.signs), one.due)
                lines.writerow([*key, *said, *numbers])

    write_atomically(path, write)


def main(
    runs: Annotated[Path, typer.Argument(help="Folder of Parquet files of the reference loop.")],
    by: Annotated[str, typer.Option(help="Column that tells kinds of runs apart: name or lr.")] = "name",
    seeds: Annotated[str, typer.Option(help="all, tune (below 100) or confirm (100 and up).")] = "all",
    responses: Annotated[int, typer.Option(help="Responses a step.")] = 128,
    watch: Annotated[
        str, typer.Option(help='Settings of SentinelConfig as JSON, {"shift": 2} for example.')
    ] = "{}",
    out: Annotated[Path | None, typer.Option(help="CSV file for a line a run.")] = None,
) -> None:
    """Print a line for each kind of runs."""
    try:
        if seeds not in SEEDS:
            raise DataError(f"--seeds is {seeds!r}; give one of {', '.join(SEEDS)}")
        config = SentinelConfig(**{"responses": responses} | json.loads(watch))
        found = read_runs(runs)
        names = [one for one in ("name", "mode", "lr", "p_true", "seed") if one in found.column_names]
        if by not in names:
            raise DataError(f"--by is {by!r}, and the runs have {', '.join(names)}; give one of these")
        by_run: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in found.to_pylist():
            if row["seed"] in SEEDS[seeds]:
                by_run.setdefault(tuple(row[one] for one in names), []).append(row)
        watched = {key: watch_run(rows, config) for key, rows in sorted(by_run.items())}
        if out is not None:
            _write_runs(out, watched, names)
    except (PvRlError, OSError, TypeError, ValueError) as error:  # JSON that is none, or no settings
        raise typer.BadParameter(str(error)) from error
    kinds: dict[str, list[tuple[int, Watched]]] = {}
    for key, one in watched.items():
        steps = sum(row["split"] == "train" for row in by_run[key])
        kinds.setdefault(str(key[names.index(by)]), []).append((steps, one))
    typer.echo(table(kinds))


if __name__ == "__main__":
    typer.run(main)
