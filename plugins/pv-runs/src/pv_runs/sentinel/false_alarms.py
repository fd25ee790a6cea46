"""False-alarm simulation: alarms of a chart on noise, over the requested rate.

python -m pv_runs.sentinel.false_alarms
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Annotated

import typer

from pv_runs.sentinel.chart import Chart
from pv_runs.sentinel.detectors import DETECTORS
from pv_runs.sentinel.reading import Reading
from pv_runs.sentinel.run_length import threshold
from pv_runs.sentinel.settings import SentinelConfig

__all__ = ["alarm_rate", "noise"]


def noise(
    rng: random.Random, *, correlation: float = 0.0, wander: float = 0.0, trend: float = 0.0
) -> Iterator[float]:
    """Values of variance 1, step after step.

    Args:
        rng: where they come from.
        correlation: of one step's noise with the next one's.
        wander: standard deviation of a random step that the level takes at each step.
        trend: what the level gains a step.
    """
    level, now = 0.0, rng.gauss(0, 1)
    while True:
        yield level + now
        now = correlation * now + math.sqrt(1 - correlation**2) * rng.gauss(0, 1)
        level += trend + rng.gauss(0, wander)


def alarm_rate(
    config: SentinelConfig, run_length: float, *, seed: int, runs: int, steps: int = 200, **of_noise: float
) -> float:
    """Alarms of one side over `run_length`'s rate: 1 is what was asked for.

    Args:
        config: memories, shift, cap, warm-up.
        run_length: steps to a false alarm, as asked for.
        seed: of the noise.
        runs: each begins anew, with its warm-up.
        steps: of a run, after the warm-up.
        of_noise: see `noise`.
    """
    sign, limit, alarms = DETECTORS["entropy"], threshold(config.reference, run_length), 0
    for index in range(runs):
        chart, values = Chart(), noise(random.Random(f"{seed}/{index}"), **of_noise)
        for step in range(1, config.warm_up + steps + 1):
            x = next(values)
            reading = Reading(value=x, scaled=x, least=1e-6)
            alarms += chart.observe(step, reading, sign, config, 0.0, limit) is not None
    return alarms / (runs * steps) * run_length


def main(
    runs: Annotated[int, typer.Option(help="Runs of 200 steps for each line.")] = 500,
    run_length: Annotated[
        float, typer.Option(help="Steps to a false alarm of one side, as asked for.")
    ] = 1000.0,
) -> None:
    """Print a line for each kind of noise: alarms over what was asked for, with its standard error."""
    config = SentinelConfig(responses=128)
    wander = 1 / config.memory / math.sqrt(1 - 1 / config.memory)
    for name, of_noise in {
        "independent": {},
        "level wanders by the model's amount": {"wander": wander},
        "level wanders by twice that": {"wander": 2 * wander},
        "autocorrelation 0.1": {"correlation": 0.1},
        "autocorrelation 0.3": {"correlation": 0.3},
        "upward trend of 0.02 a step": {"trend": 0.02},
        "downward trend of 0.1 a step": {"trend": -0.1},
    }.items():
        ratio = alarm_rate(config, run_length, seed=0, runs=runs, **of_noise)
        error = math.sqrt(max(ratio, 1 / runs) * run_length / (200 * runs))
        typer.echo(f"{name:40} {ratio:6.2f} +- {error:.2f}")


if __name__ == "__main__":
    typer.run(main)
