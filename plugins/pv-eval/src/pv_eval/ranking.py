"""Ranking metrics, which need no threshold: AUROC, average precision and selective accuracy of a verifier's scores.

For distinct scores g in descending order, with P_g the weight of right proofs that have it, N_g of wrong ones, and P, N
their sums:

    AUROC               sum_g P_g (N_below g + N_g/2) / (P N)        a tie counts 1/2 (midranks)
    AUROC in a question sum_q U_q / sum_q P_q N_q                    right and wrong proofs of one question only
    average precision   sum_g P_g/P  TP_g/(TP_g + FP_g)              TP_g, FP_g of all scores >= g: tied ones together

AUROC is 0.5 by chance, average precision the share of right proofs. The average precision of wrong proofs ranks them by
the lowest score.

Selective accuracy leaves the least sure pairs out. A pair is right if its majority verdict is its label, half right in
a tie, wrong without any verdict; with R_g the weight of right ones of sureness g and W_g of all, A(c) is the weight of
right ones among the surest c of the whole weight, by expectation within a tie: so A is linear there, with slope m.

    accuracy at coverage c   A(c) / c
    area                     integral over c in (0, 1] of A(c)/c = sum_g (A_0 - m c_0) ln(c_1/c_0) + m (c_1 - c_0)

Sureness is |a - r|/n by votes, |mean logit| by logit. Intervals are those of `intervals`, with the leave-one-out values
computed exactly: leaving a question out subtracts its row of P_g, N_g.

Example: right proofs with scores 1, 0.5; wrong ones with 0.5, 0. Of 4 couples three are in order and one is tied:
AUROC 3.5/4 = 0.875. Average precision 1/2 * 1 + 1/2 * 2/3 = 0.833.

The definitions are scikit-learn's (`roc_auc_score`, `average_precision_score`). Selective accuracy: Y. Geifman and R.
El-Yaniv 2017, arXiv:1705.08500.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pv_eval.best_of import scores_of
from pv_eval.counts import Floats, Sums, VoteCounts, quotient, ratio
from pv_eval.intervals import Estimate, Intervals, cluster_t, estimate_all
from pv_eval.ties import join_ties

__all__ = ["COVERAGES", "Ranking", "rank_by"]

COVERAGES = (0.5, 0.8, 1.0)
CURVE = tuple(step / 20 for step in range(1, 21))
BLOCK = 4_000_000
"""Numbers in a block of questions, 32 MB."""
_Statistics: TypeAlias = "Callable[[Floats, Floats], dict[str, Floats]]"


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Threshold-free numbers of one score."""

    auroc: Estimate
    auroc_within: Estimate
    """Of right and wrong proofs of the same question."""
    within: int
    """Questions that have both."""
    average_precision: Estimate
    """0 to 1, by chance the share of right proofs."""
    average_precision_wrong: Estimate
    selective: Mapping[float, Estimate]
    """Accuracy of the majority verdict by coverage."""
    selective_area: Estimate
    """Mean accuracy over all coverages."""
    curve: tuple[tuple[float, float], ...]
    """(coverage, accuracy) at 5 %, 10 %, ..., 100 %."""
    without_score: int
    """Pairs that have no score and so come last."""


def rank_by(counts: VoteCounts, how: Intervals | None = None, by: str = "votes") -> Ranking:
    """Measure how well a score ranks right proofs above wrong ones.

    Args:
        counts: of P pairs.
        how: of the intervals.
        by: `votes` (the share of all votes that accept) or `logit`, see `pv_eval.best_of.scores_of`.

    Raises:
        ConfigError: the score is unknown.
        DataError: no vote has a logit.
    """
    how = how or Intervals()
    scores, without = scores_of(counts, by)
    scores = join_ties(scores)
    by_votes = by == "votes"
    silent = counts.accepted + counts.rejected == 0 if by_votes else np.isneginf(scores)
    lead = np.where(silent, 0.0, (counts.accepted - counts.rejected) / counts.samples if by_votes else scores)
    right = np.where(silent, 0.0, np.where(lead == 0, 0.5, (lead > 0) == counts.label))
    ranked = _Rows.of(counts, scores, counts.label, ~counts.label)
    chosen = _Rows.of(counts, join_ties(np.abs(lead)), right, np.ones_like(right))
    found = ranked.estimates(_ranking, how) | chosen.estimates(_selective, how)
    couples = np.vstack([_couples(good, wrong) for good, wrong in ranked.blocks()])
    within = estimate_all(
        Sums(names=("in order", "couples"), table=couples), {"auroc": quotient("in order", "couples")}, how
    )
    return Ranking(
        auroc=found["auroc"],
        auroc_within=within["auroc"],
        within=int((couples[:, 1] > 0).sum()),
        average_precision=found["average_precision"],
        average_precision_wrong=found["average_precision_wrong"],
        selective={share: found[f"at {share}"] for share in COVERAGES},
        selective_area=found["area"],
        curve=tuple((share, float(_accuracy(*chosen.total, share))) for share in CURVE),
        without_score=without,
    )


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Two weights of each pair, to be summed by question and by group of equal value, the largest value first."""

    question: np.ndarray[Any, Any]
    """(P,)"""
    group: np.ndarray[Any, Any]
    """(P,)"""
    weights: tuple[Floats, Floats]
    """(P,) each."""

    @classmethod
    def of(cls, counts: VoteCounts, values: Floats, one: Floats, other: Floats) -> _Rows:
        group = np.unique(-values, return_inverse=True)[1].reshape(-1)
        return cls(
            question=counts.question, group=group, weights=(counts.weight * one, counts.weight * other)
        )

    @property
    def total(self) -> tuple[Floats, Floats]:
        """(G,) each."""
        one, other = (np.bincount(self.group, weights=weight) for weight in self.weights)
        return one, other

    def blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """(B, G) sums of B questions at a time."""
        groups, questions = int(self.group.max()) + 1, int(self.question.max()) + 1
        at_once = max(1, BLOCK // groups)
        for start in range(0, questions, at_once):
            size = min(at_once, questions - start)
            here = (self.question >= start) & (self.question < start + size)
            cell = (self.question[here] - start) * groups + self.group[here]
            one, other = (
                np.bincount(cell, weights=weight[here], minlength=size * groups).reshape(size, groups)
                for weight in self.weights
            )
            yield one, other

    def estimates(self, statistics: _Statistics, how: Intervals) -> dict[str, Estimate]:
        total = self.total
        values = statistics(*total)
        parts = [
            statistics(*(_rest(whole, rows) for whole, rows in zip(total, block, strict=True)))
            for block in self.blocks()
        ]
        left_out = {name: np.concatenate([part[name] for part in parts]) for name in values}
        return {
            name: cluster_t(float(value), left_out[name], how, alone=np.full(1, np.nan))
            for name, value in values.items()
        }


def _rest(total: Floats, rows: Floats) -> Floats:
    rest = total - rows
    return np.where(rest > 1e-12 * total, rest, 0.0)


def _couples(good: Floats, wrong: Floats) -> Floats:
    """(..., 2) weight of the couples of a right and a wrong proof that are in order, and of all couples."""
    below = wrong.sum(axis=-1, keepdims=True) - np.cumsum(wrong, axis=-1)
    ordered = (good * (below + wrong / 2)).sum(axis=-1)
    return np.stack([ordered, good.sum(axis=-1) * wrong.sum(axis=-1)], axis=-1)


def _ranking(good: Floats, wrong: Floats) -> dict[str, Floats]:
    """From (..., G) weights of right and wrong proofs, the best score first."""
    couples = _couples(good, wrong)
    return {
        "auroc": ratio(couples[..., 0], couples[..., 1]),
        "average_precision": _average_precision(good, wrong),
        "average_precision_wrong": _average_precision(wrong[..., ::-1], good[..., ::-1]),
    }


def _average_precision(wanted: Floats, other: Floats) -> Floats:
    hits = np.cumsum(wanted, axis=-1)
    precision = np.nan_to_num(ratio(hits, hits + np.cumsum(other, axis=-1)))
    return ratio((wanted * precision).sum(axis=-1), wanted.sum(axis=-1))


def _selective(right: Floats, weight: Floats) -> dict[str, Floats]:
    """From (..., G) weights of right pairs and of all pairs, the surest first."""
    all_of_it = weight.sum(axis=-1, keepdims=True)
    end, reached = ratio(np.cumsum(weight, axis=-1), all_of_it), ratio(np.cumsum(right, axis=-1), all_of_it)
    start, before = end - ratio(weight, all_of_it), reached - ratio(right, all_of_it)
    slope = np.nan_to_num(ratio(right, weight))
    log = np.log(np.where(start > 1e-12, end, 1.0)) - np.log(np.where(start > 1e-12, start, 1.0))
    area = ((before - slope * start) * log + slope * (end - start)).sum(axis=-1)
    return {"area": area, **{f"at {share}": _accuracy(right, weight, share) for share in COVERAGES}}


def _accuracy(right: Floats, weight: Floats, coverage: float) -> Floats:
    all_of_it = weight.sum(axis=-1, keepdims=True)
    end = ratio(np.cumsum(weight, axis=-1), all_of_it)
    width = ratio(weight, all_of_it)
    inside = np.clip(np.nan_to_num(ratio(coverage - end + width, width)), 0.0, 1.0)
    return ratio((right * inside).sum(axis=-1), coverage * all_of_it[..., 0])
