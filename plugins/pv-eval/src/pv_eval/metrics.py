"""Accuracy and its kin, from votes. The positive class is the right proof: a true positive is one that is accepted.

For pair i with weight w_i and n_i votes, of which a_i accept, r_i reject and m_i have no verdict, each pair counts
once, by the share of its votes:

    tp = sum_right w_i a_i/n_i    fn = sum_right w_i r_i/n_i    none_right = sum_right w_i m_i/n_i
    fp = sum_wrong w_i a_i/n_i    tn = sum_wrong w_i r_i/n_i    none_wrong = sum_wrong w_i m_i/n_i

    Avg@k              (tp + tn) / (tp + fp + tn + fn + none_right + none_wrong)
    accuracy, right    tp / (tp + fn + none_right)          also the recall of right proofs
    accuracy, wrong    tn / (tn + fp + none_wrong)          also the recall of wrong proofs
    balanced           the mean of the two: 0.5 for who accepts everything
    precision          tp / (tp + fp); of wrong proofs tn / (tn + fn)
    F1                 2 P R / (P + R)
    missing            (none_right + none_wrong) / all

A missing verdict is wrong: it lowers accuracy and recall. It accepts nothing, so it is not in a precision.

Avg@k is the mean accuracy of k samples. The mean over all n samples is its mean over all subsets of size k <= n, so it
is the same number for each k <= n, and unbiased for the verifier's expected accuracy; only its spread depends on k.

Example: two right proofs with votes TTTF and TFFN (N: none), one wrong proof with FFFT, weights 1. tp = 0.75 + 0.25,
fn = 0.25 + 0.5, none_right = 0.25, tn = 0.75, fp = 0.25. Avg@4 = 1.75/3 = 0.583, right 0.5, wrong 0.75, balanced 0.625,
precision 1/1.25 = 0.8, F1 = 2 * 0.8 * 0.5 / 1.3 = 0.615.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pv_eval.counts import Floats, VoteCounts
from pv_eval.sums import Columns, Statistic, Sums, ratio, sum_by_question

__all__ = ["METRICS", "class_sums", "sampling_error"]


def class_sums(counts: VoteCounts) -> Sums:
    """The six sums above, by question."""
    n = counts.samples
    right, wrong = counts.label, ~counts.label
    accepted, rejected, missing = counts.accepted / n, counts.rejected / n, counts.missing / n
    return sum_by_question(
        counts,
        {
            "tp": right * accepted,
            "fn": right * rejected,
            "none_right": right * missing,
            "fp": wrong * accepted,
            "tn": wrong * rejected,
            "none_wrong": wrong * missing,
        },
    )


def _all(s: Columns) -> Floats:
    return s["tp"] + s["fn"] + s["none_right"] + s["fp"] + s["tn"] + s["none_wrong"]


def accuracy(s: Columns) -> Floats:
    return ratio(s["tp"] + s["tn"], _all(s))


def accuracy_right(s: Columns) -> Floats:
    return ratio(s["tp"], s["tp"] + s["fn"] + s["none_right"])


def accuracy_wrong(s: Columns) -> Floats:
    return ratio(s["tn"], s["tn"] + s["fp"] + s["none_wrong"])


def balanced(s: Columns) -> Floats:
    return (accuracy_right(s) + accuracy_wrong(s)) / 2


def precision(s: Columns) -> Floats:
    return ratio(s["tp"], s["tp"] + s["fp"])


def precision_wrong(s: Columns) -> Floats:
    return ratio(s["tn"], s["tn"] + s["fn"])


def f1(s: Columns) -> Floats:
    """As 2tp / (2tp + fp + fn + none_right): defined where nothing is accepted, and then 0."""
    return ratio(2 * s["tp"], 2 * s["tp"] + s["fp"] + s["fn"] + s["none_right"])


def f1_wrong(s: Columns) -> Floats:
    return ratio(2 * s["tn"], 2 * s["tn"] + s["fp"] + s["fn"] + s["none_wrong"])


def missing(s: Columns) -> Floats:
    return ratio(s["none_right"] + s["none_wrong"], _all(s))


def accepted(s: Columns) -> Floats:
    return ratio(s["tp"] + s["fp"], _all(s))


def accuracy_of_verdicts(s: Columns) -> Floats:
    return ratio(s["tp"] + s["tn"], s["tp"] + s["fn"] + s["fp"] + s["tn"])


def always_true(s: Columns) -> Floats:
    return ratio(s["tp"] + s["fn"] + s["none_right"], _all(s))


METRICS: Mapping[str, Statistic] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced,
    "accuracy_right": accuracy_right,
    "accuracy_wrong": accuracy_wrong,
    "precision": precision,
    "f1": f1,
    "precision_wrong": precision_wrong,
    "f1_wrong": f1_wrong,
    "missing": missing,
    "accepted": accepted,
    "accuracy_of_verdicts": accuracy_of_verdicts,
    "accuracy_of_always_true": always_true,
}
"""By name. `accuracy` is Avg@k; a class's recall is its accuracy; `accuracy_of_verdicts` leaves missing ones out."""


def sampling_error(counts: VoteCounts, k: int) -> float:
    """Standard error of Avg@k if the same pairs were sampled anew: how far two runs of k samples differ by chance.

        sqrt(sum_i w_i^2 v_i / k) / sum_i w_i,   v_i = p_i (1 - p_i) n_i / (n_i - 1),  p_i the share of right votes

    NaN where a pair has one sample only, of which no spread can be seen.

    Example: two pairs of 4 votes, of which 2 and 4 are right, weights 1: v = (1/3, 0), and for k = 4 it is
    sqrt(1/12) / 2 = 0.144.
    """
    n = counts.samples
    if (n < 2).any():
        return float("nan")
    spread = counts.right * (1 - counts.right) * n / (n - 1)
    return float(np.sqrt((counts.weight**2 * spread / k).sum()) / counts.weight.sum())
