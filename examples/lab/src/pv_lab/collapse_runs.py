"""Runs that are made to collapse, and healthy ones, for the sentinel: `python -m pv_lab.collapse_runs --out DIR`.

Five causes that a real run can have:

- `rate`: a learning rate of 8e-4, four times what is right here;
- `rate, warmed up`: the same, reached after 30 steps;
- `labels`: from some step on 80 % of the wrong proofs are labelled right, as by a bad shard of the data;
- `labels swapped`: from some step on 90 % of all labels are turned round, as by a mapping that was changed;
- `length is paid`: from some step on the reward pays length, and the start knows how to loop.

At 2e-4 most of these fall within a few steps, sooner than a chart can tell. `--causes slow` has them
again for longer runs, turned labels and half the pay for length at half the rate, with right proofs that are labelled
wrong as one more, beside healthy runs whose rate is warmed up, and such that loop.

Seeds 0 to 4 are to tune a sentinel on, 100 to 104 to confirm; both have 20 healthy runs beside the sudden causes. Held
out at every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pv_lab.loop_settings import Run, Settings
from pv_lab.many_runs import AtOnce, Device, Out, PartOfWork, Prompts, Proofs, Steps, run_command, train_runs
from pv_rl.errors import DataError

__all__ = ["CONFIRM", "HEALTHY", "TUNE", "collapsing", "collapsing_slowly", "healthy", "runs"]

HEALTHY = "healthy"
TUNE, CONFIRM = range(5), range(100, 105)
MODES = ("balanced:0.6", "grpo", "dapo")


def collapsing(seed: int, starts: Path) -> Iterator[Run]:
    """One run for each cause."""
    breaks = _breaks(seed)
    yield Run(name="rate", seed=seed, lr=8e-4)
    yield Run(name="rate, warmed up", seed=seed, lr=8e-4, lr_warm_up=30)
    yield Run(name="labels", seed=seed, flip_wrong=0.8, fault_from=breaks)
    yield Run(name="labels swapped", seed=seed, flip_right=0.9, flip_wrong=0.9, fault_from=breaks)
    yield Run(
        name="length is paid", seed=seed, length_bonus=2.0, fault_from=breaks, start=str(starts / "loops")
    )


def collapsing_slowly(seed: int, starts: Path) -> Iterator[Run]:
    """One run for each cause that takes its time (give it 80 steps or more), and two controls."""
    breaks = _breaks(seed)
    yield Run(name="labels", seed=seed, flip_wrong=0.8, fault_from=breaks)
    yield Run(name="labels, right", seed=seed, flip_right=0.8, fault_from=breaks)
    yield Run(name="labels swapped", seed=seed, lr=1e-4, flip_right=0.9, flip_wrong=0.9, fault_from=breaks)
    yield Run(
        name="length is paid",
        seed=seed,
        lr=1e-4,
        length_bonus=1.0,
        fault_from=breaks,
        start=str(starts / "loops"),
    )
    yield Run(name=f"{HEALTHY}, warmed up", seed=seed, lr_warm_up=30)
    yield Run(name=f"{HEALTHY}, loops", seed=seed, lr=1e-4, start=str(starts / "loops"))


def _breaks(seed: int) -> int:
    """What breaks during a run breaks at another step in each seed, 20 to 36."""
    return 20 + 4 * (seed % 5)


def healthy(seed: int) -> Iterator[Run]:
    """Four runs that learn: two rates, few and many right proofs, a weighting that changes with the seed."""
    for lr in (1e-4, 2e-4):
        for p_true in (0.5, 0.75):
            yield Run(name=HEALTHY, seed=seed, lr=lr, p_true=p_true, mode=MODES[seed % 3])


def runs(starts: Path, seeds: list[int], causes: str = "sudden") -> list[Run]:
    """Nine runs a seed, four of them healthy; of the slow causes six, two of them healthy.

    Raises:
        DataError: other causes.
    """
    if causes == "slow":
        return [run for seed in seeds for run in collapsing_slowly(seed, starts)]
    if causes != "sudden":
        raise DataError(f"--causes is {causes!r}; give sudden or slow")
    return [run for seed in seeds for run in (*collapsing(seed, starts), *healthy(seed))]


def main(
    out: Out,
    starts: Annotated[Path, typer.Option(help="Folder with the start loops, see pv_lab.veto_runs.")],
    device: Device = "cuda",
    steps: Steps = 60,
    prompts: Prompts = 16,
    causes: Annotated[str, typer.Option(help="sudden or slow.")] = "sudden",
    seeds: Annotated[int, typer.Option(help="Seeds to tune on, and as many to confirm.")] = 5,
    proofs: Proofs = 128,
    at_once: AtOnce = 30,
    part: PartOfWork = "1/1",
) -> None:
    """Train every cause and the healthy runs, with a held-out measurement at every step."""
    settings = Settings(steps=steps, prompts=prompts, eval_every=1, eval_proofs=proofs)
    both = [*TUNE[:seeds], *CONFIRM[:seeds]]
    train_runs(runs(starts, both, causes), settings, out, device=device, at_once=at_once, part=part)


if __name__ == "__main__":
    run_command(main)
