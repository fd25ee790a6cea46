"""Outcomes: from training histories to the numbers of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pv_lab.mechanism.experiments import Arm, Experiment
from pv_lab.mechanism.training import History, train
from pv_runs.report.interval import MeanOfSeeds, mean_of_seeds

__all__ = ["MEASURES", "ArmOutcome", "Outcome", "run_experiments"]

MEASURES = (
    "length_start",
    "length_middle",
    "length_end",
    "short_end",
    "recheck_end",
    "right_end",
    "wrong_end",
)
"""What a table shows. `start`: the first step; `middle`, `end`: means over the tenth of the steps around the middle and
over the last. `short`, `recheck`: probabilities. `right`, `wrong`: accuracy on proofs that are right and wrong."""
COLLAPSED, OPEN = 0.8, 0.5


@dataclass(frozen=True, kw_only=True)
class ArmOutcome:
    """An arm and what became of it."""

    arm: Arm
    history: History
    """Its runs only."""

    def values(self, measure: str) -> list[float]:
        """One number a run, for a name of `MEASURES`; NaN for the accuracy on proofs that there are none of."""
        name, _, when = measure.partition("_")
        place = {"short": 0, "recheck": 2}.get(name)
        curve = getattr(self.history, name) if place is None else self.history.behaviour[..., place]
        chosen = curve[:, _steps(when, curve.shape[1])]
        counted = (~np.isnan(chosen)).sum(axis=1)
        return np.where(counted, np.nansum(chosen, axis=1) / np.maximum(counted, 1), np.nan).tolist()

    def mean(self, measure: str) -> MeanOfSeeds:
        """Over the runs, with the interval."""
        found = mean_of_seeds(self.values(measure))
        assert found is not None  # an arm has a run
        return found


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """An experiment and what became of its arms."""

    experiment: Experiment
    arms: tuple[ArmOutcome, ...]

    def ordered(self, measure: str) -> bool:
        """Mean lengths fall from arm to arm: DAPO, balanced, GRPO."""
        means = [np.mean(arm.values(measure)) for arm in self.arms]
        return all(longer > shorter for longer, shorter in pairwise(means))

    def three_regimes(self) -> bool:
        """At the end GRPO accepts at once with probability 0.8 or more, the others with 0.5 or less, and the order is
        there. Means over runs."""
        *others, grpo = [np.mean(arm.values("short_end")) for arm in self.arms]
        return bool(grpo >= COLLAPSED and max(others) <= OPEN) and self.ordered("length_end")


def run_experiments(experiments: Sequence[Experiment], seed: Sequence[int]) -> list[Outcome]:
    """Train all runs of all arms side by side; they have the same number of training steps."""
    arms = [arm for experiment in experiments for arm in experiment.arms]
    history = train([arm.run for arm in arms for _ in range(arm.seeds)], seed)
    outcomes, start = [], 0
    for experiment in experiments:
        parts = []
        for arm in experiment.arms:
            chosen = slice(start, start := start + arm.seeds)
            own = History(**{name: values[chosen] for name, values in vars(history).items()})
            parts.append(ArmOutcome(arm=arm, history=own))
        outcomes.append(Outcome(experiment=experiment, arms=tuple(parts)))
    return outcomes


def _steps(when: str, number: int) -> slice | NDArray[np.int64]:
    tenth = max(1, number // 10)
    begin = {"start": 0, "middle": (number - tenth) // 2, "end": number - tenth}[when]
    return slice(begin, begin + (1 if when == "start" else tenth))
