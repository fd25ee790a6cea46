"""Cluster-adjusted bound: proofs of the same question are not independent, and an exact bound ignores that.

Where one proof of a question is judged wrongly, its siblings are likelier to be. The intraclass correlation rho is
estimated by one-way analysis of variance (questions as groups, 1 for agree and 0 for not), and the sample is counted
as the smaller independent one that says as much (Kish, Survey Sampling (1965); Korn and Graubard, Survey Methodology
24 (1998) 193):

    n_eff = n / (1 + (m - 1) rho)                 m = sum m_j^2 / sum m_j, proofs of a question, weighted by proofs
    n_eff = n_eff (t(n - 1) / t(J - 1))^2         t: quantiles at the confidence, J questions: few of them vary more

It assumes that questions were drawn independently, that one rho fits all of them, and enough questions for rho to be
known. The bound with n_eff is no longer exact; docs/concepts/audit.md says how often it was seen to be wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pv_data.audit.bounds import beta_lower
from pv_data.audit.counts import share, whole
from pv_judge.pages.text import plural
from pv_rl.errors import DataError

__all__ = ["Clustered", "bootstrap_lower_bound", "clustered_lower_bound", "intraclass_correlation"]


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """A bound that knows of questions."""

    lower: float
    """The one-sided lower bound."""
    agree: int
    checked: int
    questions: int
    correlation: float
    """rho; 0 to 1."""
    estimated: bool
    """False where rho was given, or could not be estimated and was taken to be 1."""
    effective: float
    """Independent proofs that say as much."""


def clustered_lower_bound(
    marks: Iterable[tuple[str, bool]], confidence: float = 0.90, *, correlation: float | None = None
) -> Clustered:
    """The lower bound for proofs in clusters.

    Where rho cannot be estimated (all agree, none does, or no question has two proofs beside another) it is taken to
    be 1: then a question counts about once.

    Example: 20 questions with 2 proofs each, of which both agree in 18 and none in 2. rho is 1, so the 40 proofs count
    as 20, and then as 19.3 for being so few: 0.751. Clopper and Pearson, not knowing it, would say 0.810.

    Args:
        marks: a question and whether human and label agree, one a proof.
        confidence: of the bound.
        correlation: rho where it is known from elsewhere; 0 to 1.

    Raises:
        DataError: no marks, or all of one question, from which nothing about other questions follows.
    """
    from scipy.special import stdtrit

    groups = _groups(marks)
    miss = 1 - share("confidence", confidence)
    given = None if correlation is None else share("correlation", correlation, ends="[]")
    rho = intraclass_correlation(groups) if given is None else given
    checked = sum(len(group) for group in groups)
    agree = sum(sum(group) for group in groups)
    weight = sum(len(group) ** 2 for group in groups) / checked
    used = 1.0 if rho is None else rho
    effective = checked / (1 + (weight - 1) * used)
    if effective < checked:  # independent proofs keep the exact bound
        wide, wider = (stdtrit(count - 1, 1 - miss) for count in (checked, len(groups)))
        effective = min(checked, effective * float(wide / wider) ** 2) if wider else effective
    return Clustered(
        lower=beta_lower(agree / checked * effective, effective, miss),
        agree=agree,
        checked=checked,
        questions=len(groups),
        correlation=used,
        estimated=given is None and rho is not None,
        effective=effective,
    )


def intraclass_correlation(groups: Iterable[Iterable[bool]]) -> float | None:
    """rho by analysis of variance, cut to 0..1; None where it cannot be estimated.

    `(B - W) / (B + (m0 - 1) W)`, B and W the mean squares between and within questions, and
    `m0 = (n - sum m_j^2 / n) / (J - 1)`. Example: [1, 1], [1, 0]: B = 0.25, W = 0.25, so 0.

    Args:
        groups: a group a question, of whether each of its proofs agrees.
    """
    tables = [[int(one) for one in group] for group in groups]
    n, questions = sum(map(len, tables)), len(tables)
    agree = sum(map(sum, tables))
    if questions < 2 or n == questions or agree in (0, n):
        return None
    between = sum(sum(group) ** 2 / len(group) for group in tables) - agree**2 / n
    within = agree - sum(sum(group) ** 2 / len(group) for group in tables)
    between, within = between / (questions - 1), within / (n - questions)
    size = (n - sum(len(group) ** 2 for group in tables) / n) / (questions - 1)
    return min(1.0, max(0.0, (between - within) / (between + (size - 1) * within)))


def bootstrap_lower_bound(
    marks: Iterable[tuple[str, bool]], confidence: float = 0.90, *, draws: int = 10_000, seed: int = 0
) -> float:
    """The percentile bound when whole questions are drawn again with replacement: no rho is assumed.

    It needs many questions, and some that disagree; with few it is too high.

    Args:
        marks: a question and whether human and label agree, one a proof.
        confidence: of the bound.
        draws: of all questions, at least 1.
        seed: another seed, another bound by a little.

    Raises:
        DataError: all agree, or none does: every draw would be the same.
    """
    import numpy as np

    groups = sorted(_groups(marks))
    sizes = np.array([len(group) for group in groups])
    right = np.array([sum(group) for group in groups])
    miss, draws = 1 - share("confidence", confidence), whole("draws", draws, least=1)
    if right.sum() in (0, sizes.sum()):
        raise DataError(
            "all marks are alike, so drawing them again shows no variation; use clustered_lower_bound, "
            "which takes a question as one proof then"
        )
    generator = np.random.default_rng(whole("seed", seed, least=0))
    means = np.empty(draws)
    for draw in range(draws):  # one at a time: draws x questions need not fit in memory
        chosen = generator.integers(len(groups), size=len(groups))
        means[draw] = right[chosen].sum() / sizes[chosen].sum()
    return float(np.quantile(means, miss, method="lower"))


def _groups(marks: Iterable[tuple[str, bool]]) -> list[list[bool]]:
    by_question: defaultdict[str, list[bool]] = defaultdict(list)
    for question, agrees in marks:
        by_question[question].append(bool(agrees))
    if len(by_question) < 2:
        raise DataError(
            f"the marks are of {plural(len(by_question), 'question')}; mark proofs of at least 2 (better "
            "20) to learn how much "
            "questions differ"
        )
    return list(by_question.values())
