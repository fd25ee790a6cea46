"""One judge beside the others, and beside itself where it votes more than once on a proof. From counts alone.

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

from pv_data.report.raters import raters
from pv_data.report.ratio import Ratio, ratio
from pv_judge.agreement import kappa

__all__ = ["Ballot", "Peers", "ballots", "peers"]


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
    """See the module."""

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
