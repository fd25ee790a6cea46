"""Training of the heads: paid for the verdict, the first wrong step, or a grade.

    python -m pv_lab.head_runs --start DIR --out DIR

Three heads, two learning rates, and three settings: the lab's own start, and weak checks (docs/studies/map_weak.md)
with two shares of right proofs. Runs of one seed and setting have the same proofs in the same order.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from pv_lab.loop_settings import Head, Run, Settings
from pv_lab.many_runs import AtOnce, Device, Out, PartOfWork, Prompts, Proofs, Steps, run_command, train_runs

__all__ = ["EVAL_SEED", "RATES", "grid"]

RATES = (1e-4, 2e-4)
EVAL_SEED = 11

Which = Literal["both", "usual", "weak"]


def grid(start: Path, seeds: range, which: Which = "both") -> list[Run]:
    """Every combination, ordered so that a stack holds whole comparisons."""
    settings = {"usual": [("", 0.6)], "weak": [(str(start), 0.6), (str(start), 0.75)]}
    chosen = [one for name, some in settings.items() if which in ("both", name) for one in some]
    return [
        Run(start=folder, p_true=p_true, seed=seed, lr=lr, head=head)
        for seed, (folder, p_true), lr, head in product(seeds, chosen, RATES, get_args(Head))
    ]


def main(
    out: Out,
    start: Annotated[Path, typer.Option(help="Folder of the start with weak checks.")],
    only: Annotated[Which, typer.Option(help="Start to train from.")] = "both",
    device: Device = "cuda",
    steps: Steps = 60,
    prompts: Prompts = 16,
    seeds: Annotated[int, typer.Option(help="Seeds of each combination.")] = 10,
    first_seed: Annotated[int, typer.Option(help="First seed.")] = 200,
    proofs: Proofs = 512,
    at_once: AtOnce = 40,
    part: PartOfWork = "1/1",
) -> None:
    """Train every combination with every seed."""
    settings = Settings(steps=steps, prompts=prompts, eval_every=15, eval_proofs=proofs, eval_seed=EVAL_SEED)
    train_runs(
        grid(start, range(first_seed, first_seed + seeds), only),
        settings,
        out,
        device=device,
        at_once=at_once,
        part=part,
    )


if __name__ == "__main__":
    run_command(main)
