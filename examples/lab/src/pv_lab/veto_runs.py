"""What a veto does in the lab: without it, zero and abstain, a judge that errs, a judge that is away.

    python -m pv_lab.warmstart --out STARTS/loops --begin examples/lab/src/pv_lab/weights \\
      --mix '{"accept": 0.32, "loop": 0.15}'
    python -m pv_lab.warmstart --out STARTS/only_loops --begin examples/lab/src/pv_lab/weights \\
      --mix '{"accept": 0.32, "loop": 0.15, "miss": 0.97}'
    python -m pv_lab.veto_runs --starts STARTS --out DIR --device cuda

The exploit is a habit of the start: 15 % of its traces go round at the first step, the same words four times, and
then check better than its other traces do. They loop and still end right, so that a reward of the verdict alone pays
looping. In `loops` other checks can learn to be as good; in `only_loops` they miss 97 % of the wrong steps, so that
repetition is the useful behaviour and a veto takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from pv_lab.loop_settings import Run, Settings
from pv_lab.many_runs import AtOnce, Device, Out, PartOfWork, Prompts, Proofs, Steps, run_command, train_runs

__all__ = ["LENGTH_BONUS", "OUTAGE", "cells", "grid"]

OUTAGE = (20, 30)
"""First step without an answer of the judge, first step with one again."""
LENGTH_BONUS = 1.0
"""As much as a right verdict for a response at the limit: a bug that people would see late."""


def cells(starts: Path) -> Iterator[Run]:
    """One run for each line of the report, named EXPERIMENT/VARIANT, in order."""
    loops = Run(start=str(starts / "loops"))
    yield replace(loops, name="exploit/no veto")
    for veto in ("zero", "abstain"):
        for rate in (0.0, 0.05, 0.2):
            yield replace(
                loops, name=f"exploit/{veto}, false positives {rate:.0%}", veto=veto, false_positive=rate
            )
        yield replace(loops, name=f"exploit/{veto}, false negatives 30%", veto=veto, false_negative=0.3)
    first, end = OUTAGE
    for policy in ("abstain", "fail_open", "fail_closed"):
        away = replace(loops, veto="zero", outage_from=first, outage_to=end, on_failure=policy)
        yield replace(away, name=f"outage of steps {first} to {end - 1}/{policy}")
    bug = replace(loops, length_bonus=LENGTH_BONUS)
    only = Run(start=str(starts / "only_loops"))
    healthy = Run(false_positive=0.2)
    for base, name in (
        (bug, "length is paid"),
        (only, "only loops work"),
        (healthy, "nothing loops, false positives 20%"),
    ):
        for veto in ("none", "zero", "abstain"):
            yield replace(base, name=f"{name}/{'no veto' if veto == 'none' else veto}", veto=veto)


def grid(starts: Path, seeds: range = range(5)) -> list[Run]:
    """Every cell with every seed, ordered so that a stack holds whole comparisons."""
    return [replace(cell, seed=seed) for seed in seeds for cell in cells(starts)]


def main(
    out: Out,
    starts: Annotated[Path, typer.Option(help="Folder with the starts loops and only_loops.")],
    device: Device = "cuda",
    steps: Steps = 60,
    prompts: Prompts = 16,
    seeds: Annotated[int, typer.Option(help="Seeds of each cell.")] = 5,
    proofs: Proofs = 256,
    at_once: AtOnce = 34,
    part: PartOfWork = "1/1",
) -> None:
    """Train every cell of the grid."""
    settings = Settings(steps=steps, prompts=prompts, eval_proofs=proofs)
    train_runs(grid(starts, range(seeds)), settings, out, device=device, at_once=at_once, part=part)


if __name__ == "__main__":
    run_command(main)
