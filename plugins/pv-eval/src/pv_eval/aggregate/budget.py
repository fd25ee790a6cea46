"""Budget table: which option is the best that a budget allows, and how good the choice is on other questions.

The best of many options on the same questions looks better than it is. So the choice is also made on one half of the
questions and measured on the other, both ways, for 20 ways to cut them. Each question then counts with the mean over
the cuts of what the option had on it that was chosen without it. The weights of the rule `weighted` are from other
questions than the one they are used on, in part from those of the other half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pv_eval.aggregate.options import Option, deciding
from pv_eval.counts import Floats, Sums
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.metrics import METRICS

__all__ = ["Choice", "best_at", "budget_steps"]

CUTS = 20
FEWEST = 4
"""Questions, for a choice on a half of them."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The best option at a budget."""

    budget: float
    """A proof, in the unit of the options."""
    best: Option | None
    """On all questions; None: no option is as cheap."""
    optimistic: Estimate
    """Its balanced accuracy (accuracy, where one class is absent) on the questions that it was chosen on."""
    honest: Estimate
    """That of the options chosen on the other half of the questions."""
    stable: float
    """How often the halves chose `best`; NaN without a choice on halves."""


def budget_steps(options: Sequence[Option]) -> list[float]:
    """The cost of the cheapest option, doubled until every option can be paid."""
    costs = [option.cost for option in options]
    least, most = min(costs), max(costs)
    steps = [least]
    while least > 0 and steps[-1] < most * (1 - 1e-9):
        steps.append(min(2 * steps[-1], most))
    return steps if least > 0 else sorted({least, most})


def best_at(options: Sequence[Option], budgets: Sequence[float], how: Intervals) -> list[Choice]:
    """The best option at each budget.

    Args:
        options: on the same questions, the cheapest first: of equally good options the cheapest is chosen.
        budgets: each the highest cost of a proof.
        how: of the intervals, and the seed of the cuts.
    """
    names = options[0].sums.names
    tables = np.stack([option.sums.table for option in options])  # (O, Q, S)
    decides = deciding(options[0].sums)
    number = tables.shape[1]
    first, second = _cuts(number, how.seed)

    def values(masks: Floats) -> Floats:
        """(C, O) on the questions of each mask (C, Q); an undefined value is the worst."""
        sums = Sums(names=names, table=tables[0]).columns(np.einsum("cq,oqs->cos", masks, tables))
        return np.nan_to_num(METRICS[decides](sums).round(12), nan=-np.inf)

    on_all = values(np.ones((1, number)))[0]
    of_first, of_second = values(first), values(second)
    found = []
    for budget in budgets:
        allowed = sum(option.cost <= budget * (1 + 1e-9) for option in options)
        if not allowed:
            nothing = Estimate(value=np.nan)
            found.append(Choice(budget=budget, best=None, optimistic=nothing, honest=nothing, stable=np.nan))
            continue
        best = int(on_all[:allowed].argmax())
        statistic = {"value": METRICS[decides]}
        chosen = [of_first[:, :allowed].argmax(axis=1), of_second[:, :allowed].argmax(axis=1)]
        honest, stable = Estimate(value=np.nan), np.nan
        if number >= FEWEST:
            rows = [
                tables[one] * inside_two[:, None] + tables[two] * inside_one[:, None]
                for one, two, inside_one, inside_two in zip(*chosen, first, second, strict=True)
            ]
            honest = estimate_all(Sums(names=names, table=np.mean(rows, axis=0)), statistic, how)["value"]
            stable = Counter(np.concatenate(chosen).tolist())[best] / (2 * CUTS)
        found.append(
            Choice(
                budget=budget,
                best=options[best],
                optimistic=estimate_all(options[best].sums, statistic, how)["value"],
                honest=honest,
                stable=stable,
            )
        )
    return found


def _cuts(number: int, seed: int) -> tuple[Floats, Floats]:
    """(C, Q) 1 for the questions of the first half of each cut, and for those of the second."""
    rng = np.random.default_rng(seed)
    first = np.stack([rng.permutation(number) < number // 2 for _ in range(CUTS)]).astype(float)
    return first, 1 - first
