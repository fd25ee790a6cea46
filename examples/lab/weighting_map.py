"""The map: weighting x learning rate x share of right proofs x seed, and each weighting at its own best rate.

python -m pv_rl.lab.weighting_map --out DIR --device cuda
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
from pv_rl.lab.many_runs import read_runs, train_runs
from pv_rl.lab.reference_loop import Run, Settings

__all__ = ["best_rates", "fresh_runs", "grid", "last_accuracy"]

ETAS = (0.0, 0.3, 0.6, 0.8, 1.0)
RATES = (1e-4, 2e-4, 4e-4, 8e-4)
SHARES = (0.5, 0.6, 0.75)


def grid(seeds: range = range(5)) -> list[Run]:
    """Every combination, ordered so that a stack holds whole comparisons."""
    return [
        Run(mode=f"balanced:{eta}", lr=lr, p_true=p_true, seed=seed)
        for p_true, seed, lr, eta in product(SHARES, seeds, RATES, ETAS)
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
    of_rate: dict[tuple[str, float], dict[float, list[float]]] = {}
    for (mode, p_true, lr, _), accuracy in last_accuracy(rows).items():
        of_rate.setdefault((mode, p_true), {}).setdefault(lr, []).append(accuracy)
    return {
        setting: max(rates, key=lambda lr, rates=rates: mean(rates[lr])) for setting, rates in of_rate.items()
    }


def main(
    out: Annotated[Path, typer.Option(help="Folder for the runs; one that was stopped goes on.")],
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cuda",
    steps: Annotated[int, typer.Option(help="Steps of a run.")] = 60,
    at_once: Annotated[int, typer.Option(help="Runs trained together.")] = 100,
) -> None:
    """Train the grid on seeds 0 to 4, choose rates, train each weighting at its rate on seeds 100 to 109."""
    settings = Settings(steps=steps)
    train_runs(grid(), settings, out / "grid", device=device, at_once=at_once)
    rates = best_rates(read_runs(out / "grid").to_pylist())
    train_runs(fresh_runs(rates), settings, out / "fresh", device=device, at_once=at_once)


if __name__ == "__main__":
    typer.run(main)
