"""First-error metrics: whether a verifier names the first wrong step of a proof, or that there is none.

t is the first wrong step of a proof, counted from 1, and y the step that a vote names; 0 is none. A vote of pair i has
the weight w_i / n_i, n_i votes with or without an answer. A missing answer is wrong everywhere.

    exact           y = t
    within one      y = t, or both name a step and |y - t| = 1
    wrong proofs    exact, of proofs with a wrong step (t > 0)
    right proofs    exact, of proofs without one: the vote names none
    F1              2 A B / (A + B), A and B the two above                    ProcessBench, arXiv 2412.06559
    found           of wrong proofs: the vote names some step
    accuracy        of all: found, or a right proof for which the vote names none
    missing         votes without an answer

Answer of most votes: the answer that most votes on a pair give, each of the tied ones alike; a pair without any answer
is missing. Always "none" has F1 0 and is right on all right proofs.

Example: t = 3, 0, 2 and y = 3, 0, 1: exact 2/3, within one 1, wrong proofs 1/2, right proofs 1, F1 = 2/3, found 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pv_eval.checks import Checked, Finding, check
from pv_eval.counts import Columns, Floats, Statistic, count_votes, quotient, ratio, sum_by_question
from pv_eval.intervals import Estimate, Intervals, estimate_all
from pv_eval.run_files import RunInfo
from pv_eval.votes import Pair, Vote

__all__ = ["STEP_METRICS", "Steps", "evaluate_steps", "steps_of"]


def _f1(s: Columns) -> Floats:
    wrong, right = (ratio(s[f"exact {kind}"], s[kind]) for kind in ("wrong", "right"))
    total = wrong + right
    return np.where(total == 0, 0.0, ratio(2 * wrong * right, np.where(total == 0, np.nan, total)))


STEP_METRICS: Mapping[str, Statistic] = {
    "exact": lambda s: ratio(s["exact wrong"] + s["exact right"], s["all"]),
    "within_one": lambda s: ratio(s["near"] + s["exact right"], s["all"]),
    "exact_wrong": quotient("exact wrong", "wrong"),
    "exact_right": quotient("exact right", "right"),
    "f1": _f1,
    "found": quotient("found", "wrong"),
    "accuracy": lambda s: ratio(s["found"] + s["exact right"], s["all"]),
    "missing": lambda s: 1 - ratio(s["known"], s["all"]),
}
"""By name, the formulas above as functions of sums."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """First-error metrics of a verifier on a set."""

    pairs: int
    questions: int
    wrong: int
    """Proofs with a wrong step."""
    votes: int
    samples: tuple[int, int]
    """Fewest and most of a pair."""
    of_votes: Mapping[str, Estimate]
    """Of single votes, by the names of `STEP_METRICS`."""
    of_most: Mapping[str, Estimate]
    """Of the answer of most votes."""
    floor: Mapping[str, Estimate]
    """Of always "none"; no intervals."""
    problems: tuple[Finding, ...]
    how: Intervals


def evaluate_steps(
    checked: Checked | tuple[Sequence[Pair], Sequence[Vote]], how: Intervals | None = None
) -> Steps:
    """Compute all first-error metrics.

    Args:
        checked: the result of `check(pairs, votes, truth="first_error")`, or pairs and votes.
        how: of the intervals.

    Raises:
        DataError: the set is refused, or no pair has a first wrong step and votes.
    """
    how = how or Intervals()
    found = checked if isinstance(checked, Checked) else check(*checked, truth="first_error")
    counts = count_votes(found)
    of, number = counts.pair_of_vote, len(counts.pairs)
    truth = np.array([pair.first_error for pair in counts.pairs], dtype=np.int64)
    named = np.array([-1 if vote.first_error is None else vote.first_error for vote in counts.votes])
    wrong = truth > 0

    def measure(answers: Floats, shares: Floats, how: Intervals) -> dict[str, Estimate]:
        """Of (V,) answers, -1 for a missing one, with (V,) shares that add up to 1 for each pair."""
        exact, known = answers == truth[of], answers >= 0
        near = exact | ((answers > 0) & (np.abs(answers - truth[of]) == 1))
        columns = {
            "known": known,
            "exact wrong": exact & wrong[of],
            "exact right": exact & ~wrong[of],
            "near": near & wrong[of],
            "found": (answers > 0) & wrong[of],
        }
        by_pair = {
            name: np.bincount(of, weights=shares * one, minlength=number) for name, one in columns.items()
        }
        constant = {"all": np.ones(number), "wrong": wrong.astype(float), "right": (~wrong).astype(float)}
        return estimate_all(sum_by_question(counts, by_pair | constant), STEP_METRICS, how)

    each = (1 / counts.samples)[of]
    return Steps(
        pairs=number,
        questions=len(counts.questions),
        wrong=int(wrong.sum()),
        votes=len(named),
        samples=(int(counts.samples.min()), int(counts.samples.max())),
        of_votes=measure(named, each, how),
        of_most=measure(named, _of_most(of, named, each), how),
        floor=measure(np.zeros_like(named), each, Intervals(flips=0)),
        problems=found.problems,
        how=how,
    )


def steps_of(pairs: Sequence[Pair], votes: Sequence[Vote], info: RunInfo, how: Intervals) -> Steps | None:
    """The first-error metrics of a run; None where the pairs have no first wrong steps, or the verifier names none."""
    asked = info.verdict_format == "first_error" or any(vote.first_error is not None for vote in votes)
    if not asked or all(pair.first_error is None for pair in pairs):
        return None
    return evaluate_steps((pairs, votes), how)


def _of_most(of: Floats, named: Floats, each: Floats) -> Floats:
    """(V,) shares of the votes that give the answer of most votes on their pair; missing ones where all are."""
    counted: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for pair, answer in zip(of.tolist(), named.tolist(), strict=True):
        if answer >= 0:
            counted[pair][answer] += 1
    most = {pair: max(answers.values()) for pair, answers in counted.items()}
    wins = np.array(
        [
            answer >= 0 and counted[pair][answer] == most[pair]
            for pair, answer in zip(of.tolist(), named.tolist(), strict=True)
        ]
    )
    winners = np.bincount(of, weights=wins)[of]
    return np.where(winners > 0, wins / np.maximum(winners, 1), each)
