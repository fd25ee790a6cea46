"""Best-of-k over many problems, for k = 1, 2, ...: a verifier between chance and an oracle, with intervals.

Problems are what is drawn. They count alike, whatever their number of candidates and weights; k goes up to the fewest
candidates that one has, so problems with few are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from pv_eval.best_of import best_of_curve, oracle_curve
from pv_eval.counts import Floats, VoteCounts
from pv_eval.intervals import Bootstrap, Estimate, estimate_all
from pv_eval.majority import TIES
from pv_eval.scores import scores_of
from pv_eval.sums import Columns, Sums, ratio
from pv_rl.errors import DataError

__all__ = ["BestOf", "best_of_set"]

LINES = (*TIES, "oracle", "random")


@dataclass(frozen=True, kw_only=True)
class BestOf:
    """Curves over k."""

    problems: int
    candidates: tuple[int, int]
    """Fewest and most of a problem."""
    left_out: int
    """Problems with fewer candidates, of which one has nothing to choose."""
    without_score: int
    """Candidates that come last, since they have no score."""
    curves: Mapping[str, tuple[Estimate, ...]]
    """For k = 1, 2, ...: `uniform` (the verifier), its bounds `optimistic` and `pessimistic`, `oracle` (any of the k is
    right) and `random` (the share of right candidates, the same for each k)."""

    @property
    def sizes(self) -> range:
        """The values of k."""
        return range(1, len(self.curves["uniform"]) + 1)


def best_of_set(
    counts: VoteCounts,
    how: Bootstrap | None = None,
    by: str | Mapping[str, float] = "votes",
    *,
    at_least: int | None = None,
) -> BestOf:
    """The curves.

    Args:
        counts: pairs of a question are the candidates of a problem.
        how: of the intervals.
        by: the score, see `scores_of`.
        at_least: candidates, 2 or more, of a problem that counts. By default the most that four of five have of those
            problems that have two.

    Raises:
        DataError: no question has so many pairs, or scores are missing.
    """
    scores, without = scores_of(counts, by)
    groups = [np.flatnonzero(counts.question == number) for number in range(len(counts.questions))]
    numbers = sorted(len(group) for group in groups if len(group) > 1)
    enough = at_least if at_least is not None else numbers[len(numbers) // 5] if numbers else 2
    several = [group for group in groups if len(group) >= max(2, enough)]
    if not several:
        raise DataError(
            f"best-of-k chooses among proofs of one question, and no question has {max(2, enough)}"
        )
    fewest = min(map(len, several))
    columns: dict[str, list[Floats]] = {line: [] for line in LINES}
    for group in several:
        right = counts.label[group]
        for ties in TIES:
            columns[ties].append(best_of_curve(scores[group], right, ties)[:fewest])  # pyright: ignore[reportArgumentType]
        columns["oracle"].append(oracle_curve(right.tolist())[:fewest])
        columns["random"].append(np.full(fewest, right.mean()))
    table = np.hstack([np.ones((len(several), 1)), *(np.vstack(columns[line]) for line in LINES)])
    names = ("problems", *(f"{line} {k}" for line in LINES for k in range(1, fewest + 1)))
    means = {name: partial(_mean, name=name) for name in names[1:]}
    found = estimate_all(Sums(names=names, table=table), means, how or Bootstrap())
    return BestOf(
        problems=len(several),
        candidates=(fewest, max(map(len, several))),
        left_out=len(groups) - len(several),
        without_score=without,
        curves={line: tuple(found[f"{line} {k}"] for k in range(1, fewest + 1)) for line in LINES},
    )


def _mean(s: Columns, name: str) -> Floats:
    return ratio(s[name], s["problems"])
