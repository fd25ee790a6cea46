"""Members of an ensemble: runs on the same pairs, and what a vote of each costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pv_eval.costs import Cost, cost_of
from pv_eval.counted import read_counted
from pv_eval.counts import VoteCounts
from pv_eval.paired import common
from pv_eval.provenance import sampling_details
from pv_eval.report.names import tell_apart
from pv_eval.run_files import find_runs
from pv_judge.pages.text import plural
from pv_rl.errors import ConfigError, DataError

__all__ = ["MOST_TOGETHER", "UNITS", "Member", "on_common_pairs", "price", "read_members"]

UNITS = ("usd", "tokens", "votes")
MOST_VERIFIERS = 6
MOST_TOGETHER = 4
"""Verifiers of an ensemble."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A verifier, on the pairs that all verifiers voted on."""

    name: str
    counts: VoteCounts
    cost: Cost
    """Of a verdict."""


def read_members(folders: Sequence[Path]) -> list[Member]:
    """Read runs, or folders of runs. Those of one verifier are named by what differs: prompt, temperature, seed.

    Raises:
        PvRlError: a run cannot be read or is refused, or see `on_common_pairs`.
        OSError: a file cannot be read.
    """
    names, details, counts, costs = [], [], [], []
    for number, folder in enumerate(find_runs(folders), 1):
        run = read_counted(folder, traces=False)
        counts.append(run.counts)
        costs.append(cost_of(run.votes, run.info))
        names.append(run.info.verifier)
        details.append((*sampling_details(run.info), f"seed {run.info.seed}", str(number)))
    return on_common_pairs(tell_apart(names, details), counts, costs)


def on_common_pairs(
    names: Sequence[str], verifiers: Sequence[VoteCounts], costs: Sequence[Cost]
) -> list[Member]:
    """The verifiers on the pairs that all of them voted on.

    Raises:
        DataError: they share no pair, or a pair differs between them.
        ConfigError: there are too many verifiers.
    """
    if len(verifiers) > MOST_VERIFIERS:
        raise ConfigError(
            f"{plural(len(verifiers), 'run')} were given; expected at most {MOST_VERIFIERS}, because every "
            "ensemble of up to "
            f"{MOST_TOGETHER} of them is measured. Name fewer runs"
        )
    first = verifiers[0]
    for name, other in zip(names[1:], verifiers[1:], strict=True):
        try:
            first, _ = common(first, other)
        except DataError as error:
            raise DataError(f"{names[0]} and {name}: {error}") from error
    kept = [first, *(common(first, other)[1] for other in verifiers[1:])]
    return [
        Member(name=name, counts=counts, cost=cost)
        for name, counts, cost in zip(names, kept, costs, strict=True)
    ]


def price(members: Sequence[Member], unit: str = "") -> tuple[str, list[float]]:
    """The unit of costs, and what a vote of each verifier costs in it.

    By default dollars, where every run has prices; else tokens of prompts and answers; else of answers; else votes.

    Raises:
        ConfigError: the unit is unknown, or a run does not have it.
    """
    known = {
        "usd": [one.cost.usd for one in members],
        "tokens": [one.cost.tokens for one in members],
        "answer tokens": [one.cost.answer_tokens for one in members],
        "votes": [1.0] * len(members),
    }
    if not unit:
        return next((name, costs) for name, costs in known.items() if not np.isnan(costs).any())
    if unit not in UNITS:
        raise ConfigError(f"--unit {unit!r:.40}; units are {', '.join(UNITS)}")
    if np.isnan(known[unit]).any():
        lacking = ", ".join(one.name for one, cost in zip(members, known[unit], strict=True) if cost != cost)
        raise ConfigError(
            f"--unit {unit}: the cost of a verdict is unknown for {lacking}. Evaluate again with "
            "`--client prices=...`, or choose another unit"
        )
    return unit, known[unit]
