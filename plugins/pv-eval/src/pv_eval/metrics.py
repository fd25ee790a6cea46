"""Accuracy metrics and trace lengths, from votes. The positive class is the right proof: a true positive is accepted.

For pair i with weight w_i and n_i votes, of which a_i accept, r_i reject and m_i have no verdict, each pair counts
once, by the share of its votes:

    tp = sum_right w_i a_i/n_i    fn = sum_right w_i r_i/n_i    none_right = sum_right w_i m_i/n_i
    fp = sum_wrong w_i a_i/n_i    tn = sum_wrong w_i r_i/n_i    none_wrong = sum_wrong w_i m_i/n_i

    Avg@k              (tp + tn) / (tp + fp + tn + fn + none_right + none_wrong)
    accuracy, right    tp / (tp + fn + none_right)          also the recall of right proofs
    accuracy, wrong    tn / (tn + fp + none_wrong)          also the recall of wrong proofs
    balanced           the mean of the two: 0.5 for a verifier that accepts everything
    precision          tp / (tp + fp); of wrong proofs tn / (tn + fn)
    F1                 2 P R / (P + R)
    missing            (none_right + none_wrong) / all

A missing verdict is wrong: it lowers accuracy and recall. It accepts nothing, so it does not enter a precision.

Avg@k is the mean accuracy of k samples. The mean over all n samples is its mean over all subsets of size k <= n, so it
is the same number for each k <= n, and unbiased for the verifier's expected accuracy; only its spread depends on k.

Example: two right proofs with votes TTTF and TFFN (N: none), one wrong proof with FFFT, weights 1. tp = 0.75 + 0.25,
fn = 0.25 + 0.5, none_right = 0.25, tn = 0.75, fp = 0.25. Avg@4 = 1.75/3 = 0.583, right 0.5, wrong 0.75, balanced 0.625,
precision 1/1.25 = 0.8, F1 = 2 * 0.8 * 0.5 / 1.3 = 0.615.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pv_eval.counts import Columns, Floats, Statistic, Sums, VoteCounts, quotient, ratio, sum_by_question
from pv_eval.intervals import Estimate, Intervals, estimate_all

__all__ = ["KINDS", "METRICS", "LengthRow", "class_sums", "floors", "lengths", "sampling_error"]


def class_sums(counts: VoteCounts, shares: Sequence[Floats] | None = None) -> Sums:
    """The six sums above, by question.

    Args:
        counts: of P pairs.
        shares: three of (P,), how often a pair is accepted, rejected, or neither; by default the shares of its votes.
    """
    by_verdict = (counts.accepted, counts.rejected, counts.missing)
    share = dict(zip("arm", shares or [number / counts.samples for number in by_verdict], strict=True))
    right, wrong = counts.label, ~counts.label
    return sum_by_question(
        counts,
        {
            "tp": right * share["a"],
            "fn": right * share["r"],
            "none_right": right * share["m"],
            "fp": wrong * share["a"],
            "tn": wrong * share["r"],
            "none_wrong": wrong * share["m"],
        },
    )


def _right(s: Columns) -> Floats:
    return s["tp"] + s["fn"] + s["none_right"]


def _wrong(s: Columns) -> Floats:
    return s["tn"] + s["fp"] + s["none_wrong"]


def _all(s: Columns) -> Floats:
    return _right(s) + _wrong(s)


METRICS: Mapping[str, Statistic] = {
    "accuracy": lambda s: ratio(s["tp"] + s["tn"], _all(s)),
    "balanced_accuracy": lambda s: (ratio(s["tp"], _right(s)) + ratio(s["tn"], _wrong(s))) / 2,
    "accuracy_right": lambda s: ratio(s["tp"], _right(s)),
    "accuracy_wrong": lambda s: ratio(s["tn"], _wrong(s)),
    "precision": lambda s: ratio(s["tp"], s["tp"] + s["fp"]),
    # 2tp / (2tp + fp + fn + none): defined where nothing is accepted, and then 0
    "f1": lambda s: ratio(2 * s["tp"], s["tp"] + s["fp"] + _right(s)),
    "precision_wrong": lambda s: ratio(s["tn"], s["tn"] + s["fn"]),
    "f1_wrong": lambda s: ratio(2 * s["tn"], s["tn"] + s["fn"] + _wrong(s)),
    "missing": lambda s: ratio(s["none_right"] + s["none_wrong"], _all(s)),
    "accepted": lambda s: ratio(s["tp"] + s["fp"], _all(s)),
    "accuracy_of_verdicts": lambda s: ratio(s["tp"] + s["tn"], s["tp"] + s["fn"] + s["fp"] + s["tn"]),
    "accuracy_of_always_true": lambda s: ratio(_right(s), _all(s)),
}
"""By name. `accuracy` is Avg@k; a class's recall is its accuracy; `accuracy_of_verdicts` leaves missing ones out."""


def floors(counts: VoteCounts) -> dict[str, dict[str, float]]:
    """The metrics of verifiers that read no proof, and of a perfect one, on the same set.

    Returns:
        By name (`accepts everything`, `rejects everything`, `majority class`, the better of the two by accuracy;
        `coin`, which accepts half; `coin, own rate`, which accepts as often as this verifier; `perfect`), `METRICS` by
        name. NaN where a metric is undefined: what accepts nothing has no precision of right proofs.

    Example: 3 right proofs and 1 wrong one. `accepts everything` has accuracy and precision 0.75, F1 1.5/1.75 = 0.857;
    the coin has accuracy 0.5, precision 0.75, F1 2 * 0.75 * 0.5 / 1.25 = 0.6.
    """
    total = class_sums(counts).total
    right, wrong = float(_right(total)), float(_wrong(total))
    rate = float(METRICS["accepted"](total))

    def accepting(of_right: float, of_wrong: float) -> dict[str, float]:
        sums = {"tp": right * of_right, "fn": right * (1 - of_right), "none_right": 0.0}
        sums |= {"fp": wrong * of_wrong, "tn": wrong * (1 - of_wrong), "none_wrong": 0.0}
        columns = {name: np.asarray(value) for name, value in sums.items()}
        return {name: float(statistic(columns)) for name, statistic in METRICS.items()}

    accepts, rejects = accepting(1, 1), accepting(0, 0)
    return {
        "accepts everything": accepts,
        "rejects everything": rejects,
        "majority class": accepts if right >= wrong else rejects,
        "coin": accepting(0.5, 0.5),
        "coin, own rate": accepting(rate, rate),
        "perfect": accepting(1, 0),
    }


def sampling_error(counts: VoteCounts, k: int) -> float:
    """Standard error of Avg@k if the same pairs were sampled anew: how far two runs of k samples differ by chance.

        sqrt(sum_i w_i^2 v_i / k) / sum_i w_i,   v_i = p_i (1 - p_i) n_i / (n_i - 1),  p_i the share of right votes

    NaN where a pair has one sample only, which shows no spread.

    Example: two pairs of 4 votes, of which 2 and 4 are right, weights 1: v = (1/3, 0), and for k = 4 it is
    sqrt(1/12) / 2 = 0.144.
    """
    n = counts.samples
    if (n < 2).any():
        return math.nan
    spread = counts.right * (1 - counts.right) * n / (n - 1)
    return float(np.sqrt((counts.weight**2 * spread / k).sum()) / counts.weight.sum())


KINDS = ("all", "true", "false", "none", "right", "wrong", "right proofs", "wrong proofs")
"""Kinds of votes: by verdict (`true`, `false`, `none`), by correctness (`right`, `wrong`; a missing verdict is in
neither), by label (`right proofs`, `wrong proofs`)."""


@dataclass(frozen=True, kw_only=True)
class LengthRow:
    """Trace lengths of the votes of one kind. The mean counts votes by the weight of their pair; quantiles do not."""

    kind: str
    """One of `KINDS`."""
    votes: int
    """With a length."""
    mean: Estimate
    low: float
    """10 % of the traces are shorter."""
    median: float
    high: float
    """10 % are longer."""


def lengths(counts: VoteCounts, how: Intervals) -> tuple[list[LengthRow], int]:
    """A row for each of `KINDS`, and the number of votes without a length, which are left out."""
    length = np.array([math.nan if vote.length is None else vote.length for vote in counts.votes])
    known = ~np.isnan(length)
    verdict = np.array([-1 if vote.verdict is None else int(vote.verdict) for vote in counts.votes])
    label = counts.label[counts.pair_of_vote]
    every = np.ones(len(length), dtype=bool)
    masks = (every, verdict == 1, verdict == 0, verdict == -1, verdict == label, verdict == 1 - label, label)
    inside = {kind: mask & known for kind, mask in zip(KINDS, (*masks, ~label), strict=True)}

    def by_pair(values: Floats) -> Floats:
        return np.bincount(counts.pair_of_vote, weights=values, minlength=len(counts.pairs))

    filled = np.where(known, length, 0.0)
    columns = {f"votes {kind}": by_pair(mask.astype(float)) for kind, mask in inside.items()}
    columns |= {f"length {kind}": by_pair(mask * filled) for kind, mask in inside.items()}
    means = estimate_all(
        sum_by_question(counts, columns),
        {kind: quotient(f"length {kind}", f"votes {kind}") for kind in KINDS},
        how,
        plain=True,
    )
    rows = []
    for kind, mask in inside.items():
        low, median, high = np.quantile(length[mask], [0.1, 0.5, 0.9]) if mask.any() else [math.nan] * 3
        rows.append(
            LengthRow(
                kind=kind,
                votes=int(mask.sum()),
                mean=means[kind],
                low=float(low),
                median=float(median),
                high=float(high),
            )
        )
    return rows, int((~known).sum())
