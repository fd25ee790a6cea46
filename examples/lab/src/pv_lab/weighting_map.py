"""The map: weighting x learning rate x share of right proofs x seed, and each weighting at its own best rate.

    python -m pv_lab.weighting_map --out DIR --device cuda
    python -m pv_lab.weighting_map --out DIR --only fresh --rates-from docs/studies/data/map_runs.csv --eval-seed 7

The second goes on from rates that an earlier map found, on other proofs to train on and to be held out.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, Literal

import typer

from pv_lab.many_runs import (
    AtOnce,
    Device,
    Out,
    PartOfWork,
    Prompts,
    Proofs,
    Steps,
    read_runs,
    run_command,
    train_runs,
)
from pv_lab.reference_loop import Run, Settings
from pv_rl.errors import DataError

__all__ = ["best_rates", "fresh_runs", "grid", "last_accuracy", "rates_of"]

ETAS = (0.0, 0.3, 0.6, 0.8, 1.0)
RATES = (1e-4, 2e-4, 4e-4, 8e-4)
SHARES = (0.5, 0.6, 0.75)


def grid(
    seeds: range = range(5), rates: Sequence[float] = RATES, shares: Sequence[float] = SHARES
) -> list[Run]:
    """Every combination, ordered so that a stack holds whole comparisons."""
    return [
        Run(mode=f"balanced:{eta}", lr=lr, p_true=p_true, seed=seed)
        for p_true, seed, lr, eta in product(shares, seeds, rates, ETAS)
    ]


def fresh_runs(rates: dict[tuple[str, float], float], seeds: range = range(100, 110)) -> list[Run]:
    """Each weighting at the rate that was chosen for it, on seeds that were not used to choose."""
    return [
        Run(mode=mode, lr=lr, p_true=p_true, seed=seed)
        for seed, ((mode, p_true), lr) in product(seeds, sorted(rates.items()))
    ]


def last_accuracy(rows: list[dict[str, Any]]) -> dict[tuple[str, float, float, int], float]:
    """Balanced accuracy of each run, (mode, p_true, lr, seed), at its last held-out measurement."""
    held_out = sorted((row for row in rows if row["split"] == "held_out"), key=lambda row: row["step"])
    return {
        (row["mode"], row["p_true"], row["lr"], row["seed"]): (row["right_proofs"] + row["wrong_proofs"]) / 2
        for row in held_out
    }


def best_rates(rows: list[dict[str, Any]]) -> dict[tuple[str, float], float]:
    """For each (mode, p_true) the rate with the best mean of `last_accuracy` over seeds."""
    return _best((mode, p_true, lr, one) for (mode, p_true, lr, _), one in last_accuracy(rows).items())


def rates_of(table: Path) -> dict[tuple[str, float], float]:
    """The same from the `runs.csv` of `map_report`.

    Raises:
        DataError: it has no columns eta, p_true, lr and balanced, or no numbers in them.
    """
    try:
        with table.open(newline="") as file:
            lines = [
                (
                    f"balanced:{float(row['eta'])}",
                    float(row["p_true"]),
                    float(row["lr"]),
                    float(row["balanced"]),
                )
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{table} is no runs.csv of pv_lab.map_report: {error}") from error
    if not lines:
        raise DataError(f"{table} holds no run; give the runs.csv of pv_lab.map_report")
    return _best(lines)


def _best(runs: Iterable[tuple[str, float, float, float]]) -> dict[tuple[str, float], float]:
    """Of (mode, p_true, lr, accuracy) of each run."""
    of_rate: dict[tuple[str, float], dict[float, list[float]]] = {}
    for mode, p_true, lr, accuracy in runs:
        of_rate.setdefault((mode, p_true), {}).setdefault(lr, []).append(accuracy)
    return {
        setting: max(rates, key=lambda lr, rates=rates: mean(rates[lr])) for setting, rates in of_rate.items()
    }


def main(
    out: Out,
    device: Device = "cuda",
    only: Annotated[Literal["both", "grid", "fresh"], typer.Option(help="Which half to train.")] = "both",
    rates_from: Annotated[
        Path | None, typer.Option(help="runs.csv of an earlier map whose best rates are taken.")
    ] = None,
    start: Annotated[str, typer.Option(help="Folder of another verifier to start from.")] = "",
    eval_seed: Annotated[int, typer.Option(help="Of the held-out proofs.")] = Settings.eval_seed,
    rate: Annotated[list[float] | None, typer.Option(help="Learning rates of the grid.")] = None,
    share: Annotated[list[float] | None, typer.Option(help="Shares of right proofs of the grid.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of the grid.")] = 5,
    fresh_seeds: Annotated[int, typer.Option(help="Seeds of the second half, 100 and up.")] = 10,
    steps: Steps = 60,
    prompts: Prompts = 16,
    proofs: Proofs = 256,
    at_once: AtOnce = 100,
    part: PartOfWork = "1/1",
) -> None:
    """Train the grid on seeds 0 to 4, choose rates, train each weighting at its rate on seeds 100 to 109."""
    settings = Settings(steps=steps, prompts=prompts, eval_proofs=proofs, eval_seed=eval_seed)

    def train(runs: list[Run], folder: Path) -> None:
        runs = [replace(run, start=start) for run in runs]
        train_runs(runs, settings, folder, device=device, at_once=at_once, part=part)

    if only != "fresh":
        train(grid(range(seeds), rate or RATES, share or SHARES), out / "grid")
    if only != "grid":
        # All of the grid has to be there: with --part train it first, by --only grid.
        rates = rates_of(rates_from) if rates_from else best_rates(read_runs(out / "grid").to_pylist())
        train(fresh_runs(rates, range(100, 100 + fresh_seeds)), out / "fresh")


if __name__ == "__main__":
    run_command(main)
