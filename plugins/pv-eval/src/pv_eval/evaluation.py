"""Evaluation: all metrics of one verifier on one set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pv_eval.calibration import BINS, Calibration, calibration
from pv_eval.checks import Checked, Finding
from pv_eval.counts import (
    Columns,
    Floats,
    Statistic,
    Sums,
    VoteCounts,
    count_votes,
    quotient,
    sum_by_question,
)
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.majority import TIES, majority_right, majority_verdicts
from pv_eval.metrics import METRICS, LengthRow, class_sums, floors, lengths, sampling_error
from pv_eval.ranking import Ranking, rank_by
from pv_judge.agreement import Agreement, ac1, kappa, raw_agreement
from pv_judge.agreement import Estimate as Agreed

__all__ = ["Evaluation", "Slice", "evaluate", "with_labels"]

MOST_SLICES = 50
"""The largest ones have metrics of their own."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """The metrics of one part of the set."""

    name: str
    pairs: int
    questions: int
    right: int
    """Right proofs among them."""
    metrics: Mapping[str, Estimate]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """All metrics of a verifier on a set."""

    pairs: int
    questions: int
    right: int
    """Right proofs."""
    votes: int
    samples: tuple[int, int]
    """Fewest and most of a pair."""
    metrics: Mapping[str, Estimate]
    """By the names of `METRICS`."""
    floors: Mapping[str, Mapping[str, float]]
    """The same metrics of verifiers that read nothing, and of a perfect one; see `pv_eval.metrics.floors`."""
    ranking: Mapping[str, Ranking]
    """Threshold-free numbers of `votes` and, where votes have one, of `logit`."""
    majority: Mapping[int, Mapping[str, Estimate]]
    """maj@k by k, then by the treatment of ties."""
    sampling_error: float
    """Standard error of Avg@k from sampling alone, k the fewest samples of a pair."""
    calibration: Calibration
    lengths: tuple[LengthRow, ...]
    without_length: int
    """Votes."""
    agreement: Agreement
    """Of the majority verdict with the label; a tie or no verdict is a third category, `none`."""
    majority_kinds: Mapping[str, int]
    """Pairs by `decided`, `tied`, `no verdict`."""
    slices: tuple[Slice, ...]
    problems: tuple[Finding, ...]
    how: Intervals


def evaluate(
    checked: Checked | VoteCounts,
    how: Intervals | None = None,
    *,
    bins: int = BINS,
    problems: tuple[Finding, ...] = (),
) -> Evaluation:
    """Compute all metrics.

    Args:
        checked: the result of `check`, or counts of it.
        how: of the intervals.
        bins: of the calibration.
        problems: of the set, where `checked` is counts.

    Raises:
        DataError: the set is refused.
    """
    how = how or Intervals()
    counts = count_votes(checked) if isinstance(checked, Checked) else checked
    found = checked.problems if isinstance(checked, Checked) else problems
    rows, without_length = lengths(counts, how)
    fewest, most = int(counts.samples.min()), int(counts.samples.max())
    numbers = Counter(pair.slice for pair in counts.pairs)
    largest = [name for name, _ in sorted(numbers.items(), key=lambda one: (-one[1], one[0]))]
    if len(largest) > MOST_SLICES:
        more = len(largest) - MOST_SLICES
        found = (
            *found,
            Finding(what=f"slices without a line, beyond the {MOST_SLICES} largest", number=more),
        )
    names = sorted(largest[:MOST_SLICES])
    return Evaluation(
        pairs=len(counts.pairs),
        questions=len(counts.questions),
        right=int(counts.label.sum()),
        votes=len(counts.votes),
        samples=(fewest, most),
        metrics=estimate_all(class_sums(counts), METRICS, how),
        floors=floors(counts),
        ranking={
            by: rank_by(counts, how, by)
            for by in ("votes", "logit")
            if by == "votes" or any(vote.logit is not None for vote in counts.votes)
        },
        majority={k: _majority(counts, k, how) for k in _sizes(fewest)},
        sampling_error=sampling_error(counts, fewest),
        calibration=calibration(counts, how, bins),
        lengths=tuple(rows),
        without_length=without_length,
        agreement=with_labels(counts, how),
        majority_kinds=dict(majority_verdicts(counts)[1]),
        slices=tuple(_slice(counts, name, how) for name in names) if len(names) > 1 else (),
        problems=found,
        how=how,
    )


def with_labels(counts: VoteCounts, how: Intervals) -> Agreement:
    """Agreement of majority verdicts with labels; it ignores weights."""
    said = [2 if verdict is None else int(verdict) for verdict in majority_verdicts(counts)[0]]
    # a category that no rater uses changes AC1, so `none` is one only where it is used
    size = 3 if 2 in said else 2
    cells = np.zeros((len(counts.questions), size * size))
    np.add.at(cells, (counts.question, counts.label * size + np.array(said)), 1.0)
    names = tuple(map(str, range(size * size)))

    def each(measure: Callable[[Floats], float | None]) -> Statistic:
        def statistic(s: Columns) -> Floats:
            tables = np.stack([s[name] for name in names], axis=-1)
            values = [measure(one.reshape(size, size)) for one in tables.reshape(-1, size * size)]
            return np.array(values, dtype=float).reshape(tables.shape[:-1])  # None becomes NaN

        return statistic

    sums = Sums(names=names, table=cells)
    found = estimate_all(sums, {"raw": each(raw_agreement)}, how)
    found |= estimate_all(sums, {"kappa": each(kappa), "ac1": each(ac1)}, how, signed=True)
    raw, by_kappa, by_ac1 = (
        Agreed(**{end: _known(getattr(found[name], end)) for end in ("value", "low", "high")})
        for name in ("raw", "kappa", "ac1")
    )
    return Agreement(number=len(said), raw=raw, kappa=by_kappa, ac1=by_ac1)


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _majority(counts: VoteCounts, k: int, how: Intervals) -> dict[str, Estimate]:
    by_pair = {ties: majority_right(counts, k, ties) for ties in TIES}
    sums = sum_by_question(counts, {**by_pair, "all": counts.weight * 0 + 1})
    return estimate_all(sums, {ties: quotient(ties, "all") for ties in TIES}, how)


def _sizes(fewest: int) -> list[int]:
    """1, 3, 5, ... up to 9 and the number of samples itself: odd sizes tie only through missing votes."""
    return sorted({k for k in (1, 3, 5, 7, 9) if k <= fewest} | {fewest})


def _slice(counts: VoteCounts, name: str, how: Intervals) -> Slice:
    part = counts.part([pair.slice == name for pair in counts.pairs])
    return Slice(
        name=name,
        pairs=len(part.pairs),
        questions=len(part.questions),
        right=int(part.label.sum()),
        metrics=estimate_all(class_sums(part), METRICS, how),
    )
