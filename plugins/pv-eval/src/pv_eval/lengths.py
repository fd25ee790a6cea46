"""How long traces are, by what they say and whether it is so.

A row is a kind of vote: by verdict (`true`, `false`, `none`), by correctness (`right`, `wrong`; no verdict is neither),
by label (`right proofs`, `wrong proofs`). Votes count by the weight of their pair; votes without a length are left out
and counted. Quantiles have no interval and no weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from pv_eval.counts import VoteCounts
from pv_eval.intervals import Bootstrap, Estimate, estimate_all
from pv_eval.sums import Columns, Sums, ratio

__all__ = ["KINDS", "LengthRow", "lengths"]

KINDS = ("all", "true", "false", "none", "right", "wrong", "right proofs", "wrong proofs")


@dataclass(frozen=True, kw_only=True)
class LengthRow:
    """Of the votes of one kind."""

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


def lengths(counts: VoteCounts, how: Bootstrap) -> tuple[list[LengthRow], int]:
    """The rows, and how many votes have no length."""
    length = np.array([math.nan if vote.length is None else vote.length for vote in counts.votes])
    known = ~np.isnan(length)
    verdict = np.array([-1 if vote.verdict is None else int(vote.verdict) for vote in counts.votes])
    label = counts.label[counts.pair_of_vote]
    kinds = {
        "all": np.ones(len(length), dtype=bool),
        "true": verdict == 1,
        "false": verdict == 0,
        "none": verdict == -1,
        "right": verdict == label,
        "wrong": verdict == 1 - label,
        "right proofs": label,
        "wrong proofs": ~label,
    }
    weight = counts.weight[counts.pair_of_vote]
    question = counts.question[counts.pair_of_vote]
    names, columns = [], []
    for kind, these in kinds.items():
        inside = weight * (these & known)
        for name, values in (
            (f"votes {kind}", inside),
            (f"length {kind}", inside * np.where(known, length, 0.0)),
        ):
            names.append(name)
            columns.append(np.bincount(question, weights=values, minlength=len(counts.questions)))
    sums = Sums(names=tuple(names), table=np.column_stack(columns))
    means = estimate_all(sums, {kind: partial(_mean, kind=kind) for kind in KINDS}, how)
    rows = []
    for kind in KINDS:
        these = length[kinds[kind] & known]
        low, median, high = np.quantile(these, [0.1, 0.5, 0.9]) if len(these) else [math.nan] * 3
        rows.append(
            LengthRow(
                kind=kind,
                votes=len(these),
                mean=means[kind],
                low=float(low),
                median=float(median),
                high=float(high),
            )
        )
    return rows, int((~known).sum())


def _mean(s: Columns, kind: str) -> np.ndarray:
    return ratio(s[f"length {kind}"], s[f"votes {kind}"])
