"""Two verifiers on the same pairs: differences with intervals, and tests.

A difference is second minus first. Its interval draws the same questions for both (the bootstrap of `intervals`), so
that what makes a question hard for both cancels. `sign_flip` tests Avg@k and balanced accuracy, which are sums over
questions; `mcnemar` tests majority verdicts, where a tie or no verdict is not right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from pv_eval.counts import Floats, VoteCounts
from pv_eval.intervals import Bootstrap, Estimate, estimate_all
from pv_eval.majority import majority_verdicts
from pv_eval.metrics import METRICS, class_sums
from pv_eval.permutation import mcnemar, sign_flip
from pv_eval.sums import Columns, Statistic
from pv_rl.errors import DataError

__all__ = ["Comparison", "common", "compare"]

OTHER = "second "


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Of two verifiers."""

    pairs: int
    """That both voted on."""
    questions: int
    left_out: int
    """Pairs that only one of them voted on."""
    differences: Mapping[str, Estimate]
    """By the metric's name, second minus first."""
    only_first: int
    """Pairs on which the majority of the first alone is right."""
    only_second: int
    ties: tuple[int, int]
    """Pairs on which each has no majority."""
    mcnemar_p: float
    sign_flip_p: Mapping[str, float]
    """For `accuracy` and `balanced_accuracy`; NaN where that is not defined."""


def common(first: VoteCounts, second: VoteCounts) -> tuple[VoteCounts, VoteCounts]:
    """Both, on the pairs that both have, in the same order.

    Raises:
        DataError: there is no such pair, or one has another label, question or weight in the second.
    """
    of_second = {pair.pair_id: pair for pair in second.pairs}
    shared = [pair for pair in first.pairs if pair.pair_id in of_second]
    if not shared:
        raise DataError("the two verifiers have no pair in common; compare them on the same set")
    odd = [
        pair.pair_id
        for pair in shared
        for other in (of_second[pair.pair_id],)
        if (pair.label, pair.question_id, pair.weight) != (other.label, other.question_id, other.weight)
    ]
    if odd:
        raise DataError(
            f"{len(odd)} pairs have another label, question or weight in the two sets, {odd[0][:80]!r} the first: "
            "evaluate both on one set"
        )
    names = {pair.pair_id for pair in shared}
    one = first.part([pair.pair_id in names for pair in first.pairs])
    two = second.part([pair.pair_id in names for pair in second.pairs])
    return one, two.in_order_of(one)


def compare(first: VoteCounts, second: VoteCounts, how: Bootstrap | None = None) -> Comparison:
    """Compare.

    Raises:
        DataError: see `common`.
    """
    how = how or Bootstrap()
    one, two = common(first, second)
    sums = class_sums(one).beside(class_sums(two), OTHER)
    right = [
        np.array([verdict is bool(label) for verdict, label in zip(verdicts, counts.label, strict=True)])
        for counts in (one, two)
        for verdicts in (majority_verdicts(counts)[0],)
    ]
    only_first, only_second = int((right[0] & ~right[1]).sum()), int((~right[0] & right[1]).sum())
    ties = [sum(verdict is None for verdict in majority_verdicts(counts)[0]) for counts in (one, two)]
    return Comparison(
        pairs=len(one.pairs),
        questions=len(one.questions),
        left_out=len(first.pairs) + len(second.pairs) - 2 * len(one.pairs),
        differences=estimate_all(
            sums,
            {name: partial(_difference, statistic=statistic) for name, statistic in METRICS.items()},
            how,
        ),
        only_first=only_first,
        only_second=only_second,
        ties=(ties[0], ties[1]),
        mcnemar_p=mcnemar(only_first, only_second),
        sign_flip_p={
            "accuracy": sign_flip(_by_question(one, two), seed=how.seed),
            "balanced_accuracy": _balanced_p(one, two, how.seed),
        },
    )


def _difference(s: Columns, statistic: Statistic) -> Floats:
    return statistic({name.removeprefix(OTHER): s[name] for name in s if name.startswith(OTHER)}) - statistic(
        s
    )


def _by_question(one: VoteCounts, two: VoteCounts, only: bool | None = None) -> Floats:
    """(Q,) what each question adds to the difference of the mean shares of right votes, of a class or of all."""
    weight = one.weight if only is None else one.weight * (one.label == only)
    values = weight * (two.right - one.right) / max(weight.sum(), 1e-300)
    return np.bincount(one.question, weights=values, minlength=len(one.questions))


def _balanced_p(one: VoteCounts, two: VoteCounts, seed: int) -> float:
    if any(one.weight[one.label == only].sum() == 0 for only in (True, False)):
        return float("nan")
    return sign_flip((_by_question(one, two, True) + _by_question(one, two, False)) / 2, seed=seed)
