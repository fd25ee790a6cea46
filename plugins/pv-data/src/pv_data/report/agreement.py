"""Agreement of judges on yes or no, from counts alone, so that no table of votes is held in memory.

Of any number of raters:

Item i has r_i votes, r_ik of them for category k (yes, no); items with one vote or none say nothing.

    agreement  p_a   = mean_i sum_k r_ik (r_ik - 1) / (r_i (r_i - 1))     chance that two votes on an item are the same
    pi_k             = mean_i r_ik / r_i
    Fleiss     kappa = (p_a - p_e) / (1 - p_e),  p_e = sum_k pi_k^2                          Fleiss 1971
    Gwet       AC1   = (p_a - p_e) / (1 - p_e),  p_e = sum_k pi_k (1 - pi_k)                 Gwet 2008, two categories
    Krippendorff     = 1 - D_o / D_e             D_o = 1 - sum_k o_kk / n,  o_kk = sum_i r_ik (r_ik - 1) / (r_i - 1)
               alpha                             D_e = 1 - sum_k n_k (n_k - 1) / (n (n - 1)),  n_k = sum_i r_ik
    on k             = o_kk / n_k                given a vote for k, the chance that another one is for k too

Where nearly all votes are yes, kappa and alpha fall to 0 though the raters hardly differ; AC1 does not. Read them
together. All take raters for exchangeable and independent: votes of one model, asked thrice, are not, and agree for
reasons that have nothing to do with the truth.

Example: four items, five votes each, yes 5, 5, 3, 0. p_a = (1 + 1 + 0.4 + 1)/4 = 0.85, pi = (0.65, 0.35).
kappa: p_e = 0.545, so 0.670. AC1: p_e = 0.455, so 0.725. alpha: o = (11.5, 5.5), n = 20, D_o = 0.15,
D_e = 1 - (13 * 12 + 7 * 6)/380 = 0.479, so 0.687. On yes 11.5/13 = 0.885, on no 5.5/7 = 0.786.

Sources: J. Fleiss 1971, doi:10.1037/h0031619; K. Gwet 2008, doi:10.1348/000711006X126600; K. Krippendorff, Content
Analysis, 2004. The libraries that have these (krippendorff, irrCAC, statsmodels) want all votes as one table in memory,
and none has all three; the tests hold these formulas to the first two.

Of one judge beside the others, and beside itself where it votes more than once on a proof:

    with others      = its votes that are as the majority of the other judges' votes on the proof / its votes where they
                       have one; where they are split evenly, or there is no other, the vote is left out
    Cohen's kappa    of the same pairs (`pv_judge.agreement`): 0 where it agrees no more than chance would
    alike            = proofs on which all its votes are the same / proofs on which it has two votes or more
    pairwise         = the chance that two of its votes on a proof are the same, mean over these proofs

Example: a judge with three votes a proof, TTT, TTF and FFF, beside two others with TT, TT and TF. The third proof is
left out with its three votes: 5 of 6 are with the others, who say True only, so that kappa is 0. Alike 2 of 3;
pairwise (1 + 1/3 + 1)/3 = 0.778.

A judge that agrees with the others need not be right: they may share a mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pv_judge.agreement import kappa

__all__ = ["CONFIDENCE", "Ballot", "Peers", "Raters", "Ratio", "ballots", "peers", "raters", "ratio"]

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A share, and its exact interval; None where there is nothing to share, no interval where none is right."""

    hits: int
    number: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


def ratio(hits: int, number: int, interval: bool = True) -> Ratio:
    """`hits` of `number`, by Clopper and Pearson where `interval`."""
    from pv_data.audit.bounds import interval as exact

    if not number or not interval:
        return Ratio(hits=hits, number=number, value=hits / number if number else None)
    low, high = exact(hits, number, CONFIDENCE)
    return Ratio(hits=hits, number=number, value=hits / number, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class Raters:
    """None where a number is not defined: no item with two votes, or all votes the same (0/0)."""

    items: int
    """With at least two votes."""
    votes: int
    """On these."""
    raw: float | None = None
    kappa: float | None = None
    alpha: float | None = None
    ac1: float | None = None
    on_true: float | None = None
    on_false: float | None = None


def raters(patterns: Mapping[tuple[int, int], int]) -> Raters:
    """From `{(votes for yes, votes): items}`."""
    usable = {(yes, votes): items for (yes, votes), items in patterns.items() if votes > 1 and items}
    number = sum(usable.values())
    total = sum(votes * items for (_, votes), items in usable.items())
    if not number:
        return Raters(items=0, votes=0)
    raw = pi = same_yes = same_no = count = 0.0
    for (yes, votes), items in usable.items():
        no = votes - yes
        raw += items * (yes * (yes - 1) + no * (no - 1)) / (votes * (votes - 1))
        pi += items * yes / votes
        same_yes += items * yes * (yes - 1) / (votes - 1)
        same_no += items * no * (no - 1) / (votes - 1)
        count += items * yes
    raw, pi, other = raw / number, pi / number, total - count
    expected = 1 - (count * (count - 1) + other * (other - 1)) / (total * (total - 1))
    return Raters(
        items=number,
        votes=total,
        raw=raw,
        kappa=_beyond(raw, pi**2 + (1 - pi) ** 2),
        alpha=1 - (1 - (same_yes + same_no) / total) / expected if expected > 1e-12 else None,
        ac1=_beyond(raw, 2 * pi * (1 - pi)),
        on_true=same_yes / count if count else None,
        on_false=same_no / other if other else None,
    )


def _beyond(observed: float, chance: float) -> float | None:
    return (observed - chance) / (1 - chance) if 1 - chance > 1e-12 else None


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """What one judge said of one proof. Few differ, so that they can be counted."""

    judge: str
    yes: int
    """Its votes for True."""
    votes: int
    others: bool | None
    """What most of the other judges' votes say; None: split evenly, or there are none."""


@dataclass(frozen=True, kw_only=True)
class Peers:
    """Of one judge, see the module."""

    with_others: Ratio
    ties: int
    """Votes that are left out."""
    kappa: float | None
    """None where nobody but one class was ever named, or nothing can be compared."""
    others_accept: Ratio
    """Its votes for True, of those where the others say True."""
    others_reject: Ratio
    """Its votes for False, of those where the others say False."""
    alike: Ratio
    """No proofs for a judge that votes once."""
    pairwise: float | None


def ballots(judges: tuple[str, ...], votes: tuple[bool, ...]) -> list[Ballot]:
    """Of each judge of one proof."""
    cast, accepts = Counter(judges), Counter(judge for judge, vote in zip(judges, votes, strict=True) if vote)
    found = []
    for judge, number in cast.items():
        for_it, against = accepts.total() - accepts[judge], len(votes) - number
        others = None if 2 * for_it == against else 2 * for_it > against
        found.append(Ballot(judge=judge, yes=accepts[judge], votes=number, others=others))
    return found


def peers(own: Mapping[Ballot, int], *, interval: bool) -> Peers:
    """From how often each ballot of one judge was cast."""
    cells: Counter[tuple[bool, bool | None]] = Counter()
    patterns: Counter[tuple[int, int]] = Counter()
    for ballot, proofs in own.items():
        cells[True, ballot.others] += ballot.yes * proofs
        cells[False, ballot.others] += (ballot.votes - ballot.yes) * proofs
        if ballot.votes > 1:
            patterns[ballot.yes, ballot.votes] += proofs
    table = [[cells[mine, others] for others in (True, False)] for mine in (True, False)]
    same = cells[True, True] + cells[False, False]
    alike = sum(proofs for (yes, votes), proofs in patterns.items() if yes in (0, votes))
    return Peers(
        with_others=ratio(same, sum(map(sum, table)), interval),
        ties=cells[True, None] + cells[False, None],
        kappa=kappa(table),
        others_accept=ratio(cells[True, True], table[0][0] + table[1][0], interval),
        others_reject=ratio(cells[False, False], table[0][1] + table[1][1], interval),
        alike=ratio(alike, patterns.total()),
        pairwise=raters(patterns).raw,
    )
