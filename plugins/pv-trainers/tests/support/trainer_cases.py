"""The fixed steps on which every trainer is measured: each cut on two seeds, 12 rows of up to 60 tokens.

A driver that cannot run a cut has a mapping `CANNOT` from its family to the reason.
"""

from __future__ import annotations

from typing import Any

from grid.cases import Case
from grid.fixed import draw_lengths
from grid.oracle import Loss

__all__ = ["CUTS", "SEEDS", "trainer_cases"]

SEEDS = (1, 2)
CUTS: dict[str, dict[str, Any]] = {
    "not cut": {"micro_rows": 12},
    "micro-batches": {"micro_rows": 2},
    "several updates": {"micro_rows": 2, "mini_rows": 6},
    "two ranks": {"micro_rows": 2, "ranks": 2},
    "packed by tokens": {"micro_rows": None, "micro_tokens": 130},
    "uneven groups": {"micro_rows": 2, "sizes": (2, 6, 1, 3)},
    "tool tokens": {"micro_rows": 2, "holes": 0.3},
    "rows that do not count": {"micro_rows": 2, "abstained": (1, 5, 6)},
    "a group that does not count": {"micro_rows": 2, "abstained": (4, 5, 6, 7)},
    "sequence ratios": {"micro_rows": 2, "loss": Loss(policy="gspo")},
    "all of it": {"micro_rows": 1, "mini_rows": 6, "ranks": 2, "holes": 0.3, "abstained": (2, 9)},
}
"""Within a cut, the numbers of updates, of ranks and of micro-batches in an update differ, so that a wrong scale shows
which of them it is. Groups of four unless `sizes` names others; the policy loss is PPO's, with ratios by token."""


def trainer_cases(seeds: tuple[int, ...] = SEEDS) -> list[Case]:
    """The cases of all cuts; `family` is the cut's name, `spec` is left to the caller."""
    cases = []
    for family, settings in CUTS.items():
        for seed in seeds:
            chosen = {name: value for name, value in settings.items() if name != "sizes"}
            groups = draw_lengths(seed, settings.get("sizes", (4, 4, 4)), longest=60)
            cases.append(Case(family=family, name=f"seed {seed}", groups=groups, seed=seed, **chosen))
    return cases
