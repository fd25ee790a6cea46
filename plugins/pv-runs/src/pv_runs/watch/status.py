"""Status of a run: its state, its pace, and the time that is left."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pv_judge.pages.text import one_line
from pv_runs.hydra_record import look_up
from pv_runs.metrics_log import Log
from pv_runs.run_folder import RunFolder
from pv_runs.watch.places import Places

__all__ = ["Status", "find_status", "total_steps"]

STEPS = "trainer.total_training_steps"
RECENT = 10
"""Steps over which a pace is taken."""
SILENCE = 600.0
"""Seconds. A run that says it is running is asked after when it has written nothing for so long, or for ten steps."""
STATES = {"running": "running", "finished": "ended", "failed": "failed", "stopped": "stopped"}


@dataclass(frozen=True, kw_only=True)
class Status:
    """See `Frame`."""

    state: str
    note: str
    total: int | None
    seconds: float | None
    left: float | None
    wrote: float | None


def find_status(places: Places, log: Log, about: Mapping[str, Any], total: int | None, now: float) -> Status:
    """Put together what the files say.

    Args:
        places: of the run.
        log: its numbers up to now.
        about: what its run.json says.
        total: steps of the run.
        now: seconds since the epoch.
    """
    wrote = max(_written(places), default=None)
    state = STATES.get(str(about.get("state")), "unknown")
    step, seconds = log.last_step, _pace(places.rollouts, log)
    odd = about.get("state") if state == "unknown" else None
    ended = step is not None and total is not None and step >= total
    left = None
    if state in ("running", "unknown") and not ended and step is not None and total and seconds is not None:
        left = (total - step) * seconds
    silent = now - wrote if wrote is not None else 0.0
    note = ""
    if state == "failed" and about.get("error"):
        note = one_line(" ".join(str(about["error"])[-2000:].split()))[-300:]
    elif state == "running" and silent > max(SILENCE, 10 * (seconds or 0.0)):
        note = "run.json says running, but nothing is written any more: it may have been killed"
    elif state == "unknown":
        if not RunFolder(places.folder).record.exists():
            note = "pv-rl train did not start this run, so it is not known whether it still runs"
        else:
            said = f"has the state {one_line(repr(odd)[:40])}" if about else "cannot be read"
            note = f"run.json {said}; pv-rl train writes {', '.join(STATES)}"
        note += ". Its last step is there" if ended else ""
    return Status(state=state, note=note, total=total, seconds=seconds, left=left, wrote=wrote)


def total_steps(config: Mapping[str, str], about: Mapping[str, Any]) -> int | None:
    """From the config, or what a resume has changed of it; None where epochs decide."""
    said = look_up(config, STEPS)
    overrides = about.get("overrides")
    for override in overrides if isinstance(overrides, list) else ():
        key, _, value = str(override).partition("=")
        if key.lstrip("+") == STEPS:
            said = value
    try:
        total = int(said or "")
    except ValueError:
        return None
    return total if 0 < total < 10**9 else None


def _pace(rollouts: Path, log: Log) -> float | None:
    """Seconds a step: the median of verl's `timing_s/step`, or the time between its files of rollouts, whichever is
    more. verl's own number leaves out what happens between steps; a copied folder may have lost the files' times.

    Both are of the last attempt, once it has trained a step: the time between two attempts is none of a step's, and an
    attempt before may have run on other machines.
    """
    began = max(log.starts.values(), default=1)
    series = log.series.get("timing_s/step", {})
    times = [value for step, value in series.items() if value > 0 and step >= began][-RECENT:]
    paces = [statistics.median(times)] if times else []
    if log.last_step is not None:
        first = max(began, log.last_step - RECENT)
        with contextlib.suppress(OSError):
            begin, end = ((rollouts / f"{step}.jsonl").stat().st_mtime for step in (first, log.last_step))
            if log.last_step > first:
                paces.append((end - begin) / (log.last_step - first))
    return max((pace for pace in paces if math.isfinite(pace) and pace > 0), default=None)


def _written(places: Places) -> Iterator[float]:
    paths = [
        *places.metrics[-1:],
        RunFolder(places.folder).log,
        places.rollouts,
        places.ledger,
        places.sentinel,
    ]
    with contextlib.suppress(OSError):
        paths += sorted(places.ledger.glob("journal-*.jsonl"))[-1:]
    for path in paths:
        with contextlib.suppress(OSError):
            yield path.stat().st_mtime
