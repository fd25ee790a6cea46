"""Best-of-k: how often the proof with a verifier's best score among k of N is right, exactly.

    E over all subsets S of size k of [G(m)],  m = argmax_{s in S} M(s)

With the candidates in tied groups of equal score (`pv_eval.ties` has the tolerance), A of them above a group of g, c of
which are right, the best of a subset is in the group with the probability (C(N-A, k) - C(N-A-g, k)) / C(N, k). Which of
the tied is chosen:

    uniform      each of those in the subset with the same probability; by symmetry right with c/g
    optimistic   a right one if there is one:     (C(N-A, k) - C(N-A-c, k)) / C(N, k)
    pessimistic  a wrong one if there is one:     (C(N-A-(g-c), k) - C(N-A-g, k)) / C(N, k)

A mean of 8 votes has 9 values, so ties decide much of the result: look at the bounds. The cost is that of sorting,
O(N log N).

G may be a grade instead of right or wrong: the result is then the expected grade of the picked proof. A bound takes the
tied in the order of their grades, which is the formula above where G is 0 or 1.

Over many problems, for k = 1, 2, ... (`best_of_set`), problems count alike, whatever their number of candidates and
weights, and intervals are over problems. k ends at the fewest candidates of a problem, so problems with few candidates
are left out, and counted.

This is not verl's `best@N` (verl/trainer/ppo/metric_utils.py): that draws N of the responses with replacement 1,000
times and takes the largest of the metric itself, so it estimates how often any of N is right (with repeats), which is
the oracle here; no verifier chooses.

Example: scores 1, 1, 0 of a right, a wrong and a right proof, k = 2. Subsets: {1,2} a tie, {1,3} right, {2,3} wrong.
Uniform 1.5/3 = 0.5, optimistic 2/3, pessimistic 1/3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pv_eval.counts import Floats, Sums, VoteCounts, quotient
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.majority import TIES, Ties, check_ties
from pv_eval.ties import join_ties
from pv_judge.pages.text import plural
from pv_rl.errors import ConfigError, DataError

__all__ = ["SCORES", "BestOf", "best_of_curve", "best_of_k", "best_of_set", "oracle_curve", "scores_of"]

SCORES = ("votes", "logit", "grade")
LINES = (*TIES, "oracle", "random")


def best_of_k(scores: Sequence[float], correct: Sequence[float], k: int, ties: Ties = "uniform") -> float:
    """The expectation above.

    Args:
        scores: (N,) M, higher is better. No NaN; -inf is a candidate that comes last.
        correct: (N,) G, True or False, or a finite grade.
        k: 1 to N.
        ties: `uniform`, or a bound: `optimistic`, `pessimistic`.

    Raises:
        DataError: (a ValueError) a score is NaN, a mark is neither a bool nor a finite number, or the lengths differ.
        ConfigError: (a ValueError) k is out of range, or the treatment of ties is unknown.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= max(1, len(scores)):
        raise ConfigError(f"best-of-k with k={k!r} of {len(scores)} candidates; k is 1 to their number")
    return float(_expect(scores, correct, np.array([k]), ties)[0])


def best_of_curve(scores: Sequence[float], correct: Sequence[float], ties: Ties = "uniform") -> Floats:
    """(N,) the expectation for k = 1, ..., N. See `best_of_k`."""
    return _expect(scores, correct, np.arange(1, len(scores) + 1), ties)


def oracle_curve(correct: Sequence[float]) -> Floats:
    """(N,) for k = 1, ..., N what a perfect verifier gets: a right candidate if a subset has one, or its best grade."""
    return best_of_curve(np.asarray(correct, dtype=float).tolist(), correct)


def _expect(scores: Sequence[float], correct: Sequence[float], sizes: np.ndarray, ties: Ties) -> Floats:
    """(K,) for each of the sizes (K,)."""
    check_ties(ties)
    given, worth = _read(scores, correct)
    number = len(given)
    # a bound picks the tied one by one, the best or the worst first; else they are one group, and its mean is picked
    order = np.lexsort((worth if ties == "pessimistic" else -worth, -given))
    given, worth = given[order], worth[order]
    single = ties != "uniform"
    starts = np.flatnonzero(np.r_[True, (given[1:] != given[:-1]) | single])
    ends = np.r_[starts[1:], number]
    mean = np.add.reduceat(worth, starts) / (ends - starts)
    none = _without(number, sizes)
    found = ((none[:, number - starts] - none[:, number - ends]) * mean).sum(axis=1)
    return np.clip(found, worth.min(), worth.max())


def _without(number: int, sizes: np.ndarray) -> Floats:
    """(K, N + 1): C(m, k) / C(N, k) for m = 0, ..., N, by C(m - 1, k) = C(m, k) (m - k) / m, which cannot overflow."""
    m = np.arange(number, 0, -1)
    steps = np.maximum(m - sizes[:, None], 0) / m
    falling = np.hstack([np.ones((len(sizes), 1)), np.cumprod(steps, axis=1)])
    return falling[:, ::-1]


def _read(scores: Sequence[float], correct: Sequence[float]) -> tuple[Floats, Floats]:
    try:
        given = np.array(scores, dtype=float)
        marks = np.asarray(correct)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"best-of-k takes numbers as scores, and True, False or grades as correct: {error}"
        ) from error
    if given.ndim != 1 or given.shape != marks.shape or not len(given):
        raise DataError(
            f"best-of-k takes as many scores as marks, one or more of each; given {given.shape} and {marks.shape}"
        )
    given = join_ties(given)
    if np.isnan(given).any():
        raise DataError(
            f"{int(np.isnan(given).sum())} of {len(given)} scores are NaN; give -inf for a candidate that comes last"
        )
    if marks.dtype.kind not in "biuf" or not np.isfinite(marks).all():
        raise DataError(
            "a candidate is correct, True, or not, False, or has a grade, which is a finite number"
        )
    return given, marks.astype(float)


@dataclass(frozen=True, kw_only=True)
class BestOf:
    """Best-of-k curves of a set: a verifier between chance and an oracle."""

    problems: int
    candidates: tuple[int, int]
    """Fewest and most of a problem."""
    left_out: int
    """Problems with fewer candidates."""
    without_score: int
    """Candidates without a score, which come last."""
    curves: Mapping[str, tuple[Estimate, ...]]
    """For k = 1, 2, ...: `uniform` (the verifier), its bounds `optimistic` and `pessimistic`, `oracle` (any of the k is
    right, or the best grade of the k) and `random` (the mean over all candidates, the same for each k)."""

    @property
    def sizes(self) -> range:
        """The values of k."""
        return range(1, len(self.curves["uniform"]) + 1)

    def to(self, scale: Callable[[float], float]) -> BestOf:
        """With the curves on another scale, a function that increases."""
        curves = {line: tuple(one.to(scale) for one in curve) for line, curve in self.curves.items()}
        return replace(self, curves=curves)


def best_of_set(
    counts: VoteCounts,
    how: Intervals | None = None,
    by: str | Mapping[str, float] = "votes",
    *,
    worth: Floats | None = None,
    at_least: int | None = None,
) -> BestOf:
    """Best-of-k curves over the problems of a set.

    Args:
        counts: pairs of a question are the candidates of a problem.
        how: of the intervals.
        by: the score, see `scores_of`.
        worth: (P,) of each pair, 0 to 1, its grade for example; by default 1 for a right and 0 for a wrong proof.
        at_least: 2 or more; a problem with fewer candidates is left out. By default the largest number that four of
            five of the problems with two candidates have.

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
        right = (counts.label if worth is None else worth)[group]
        for ties in TIES:
            columns[ties].append(best_of_curve(scores[group], right, ties)[:fewest])
        columns["oracle"].append(oracle_curve(right.tolist())[:fewest])
        columns["random"].append(np.full(fewest, right.mean()))
    table = np.hstack([np.ones((len(several), 1)), *(np.vstack(columns[line]) for line in LINES)])
    names = ("problems", *(f"{line} {k}" for line in LINES for k in range(1, fewest + 1)))
    means = {name: quotient(name, "problems") for name in names[1:]}
    found = estimate_all(Sums(names=names, table=table), means, how or Intervals())
    return BestOf(
        problems=len(several),
        candidates=(fewest, max(map(len, several))),
        left_out=len(groups) - len(several),
        without_score=without,
        curves={line: tuple(found[f"{line} {k}"] for k in range(1, fewest + 1)) for line in LINES},
    )


def scores_of(counts: VoteCounts, by: str | Mapping[str, float] = "votes") -> tuple[Floats, int]:
    """The score of each pair that best-of-k chooses by, and how many pairs have none and so come last.

    Args:
        counts: of P pairs.
        by: `votes`, the share of all n votes that accept (a missing verdict does not); `logit` (log p(True) -
            log p(False)) or `grade`, the mean over the votes that have one, -inf without any; or your own scores by
            pair_id.

    Returns:
        (P,) scores, higher is better.

    Raises:
        ConfigError: the score is unknown.
        DataError: no vote has a logit or grade, or one of your own scores is missing or NaN.
    """
    if not isinstance(by, str):
        lacking = [pair.pair_id for pair in counts.pairs if pair.pair_id not in by]
        if lacking:
            raise DataError(
                f"no score is given for {plural(len(lacking), 'pair')}, {lacking[0][:80]!r} the first; give "
                "-inf for none"
            )
        own = np.array([float(by[pair.pair_id]) for pair in counts.pairs])
        if np.isnan(own).any():
            raise DataError(f"{int(np.isnan(own).sum())} scores are NaN; give -inf for none")
        return own, int(np.isneginf(own).sum())
    if by == "votes":
        return counts.accepted / counts.samples, 0
    if by not in SCORES:
        raise ConfigError(f"score {by!r}; scores are {', '.join(SCORES)}, or numbers by pair_id")
    number = len(counts.pairs)
    given = [vote.logit if by == "logit" else vote.grade for vote in counts.votes]
    known = np.array([value is not None for value in given], dtype=bool)
    if not known.any():
        how = (
            "logit of its verdict; sample with --logits"
            if by == "logit"
            else "grade; sample with --format grade"
        )
        raise DataError(f"no vote has a {how}, or score by votes")
    values = np.array([value or 0.0 for value in given])
    sums = np.bincount(counts.pair_of_vote, weights=values, minlength=number)
    times = np.bincount(counts.pair_of_vote, weights=known.astype(float), minlength=number)
    scores = np.where(times > 0, sums / np.maximum(times, 1), -np.inf)
    return scores, int((times == 0).sum())
