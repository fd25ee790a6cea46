"""Cases: the pairs that a verifier gets most wrong, and those on which two verifiers differ most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from pv_eval.counts import VoteCounts
from pv_eval.paired import common
from pv_eval.votes import Pair, Vote

__all__ = ["Case", "Split", "disagreements", "worst_errors"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pair, how the votes on it went, and one of them."""

    pair: Pair
    accepted: int
    rejected: int
    missing: int
    vote: Vote | None
    """The first that shows it, one with a trace if there is one."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """A pair that two verifiers see differently."""

    first: Case
    second: Case
    gain: float
    """Share of right votes of the second minus that of the first."""


def worst_errors(counts: VoteCounts, label: bool, most: int) -> list[Case]:
    """Pairs of a class by the share of votes for the other class, largest first; at most `most`, ties by name.

    Args:
        counts: of the verifier.
        label: True for right proofs that are rejected, False for wrong ones that are accepted.
        most: pairs.
    """
    wrong = (counts.rejected if label else counts.accepted) / counts.samples
    rows = [n for n in range(len(counts.pairs)) if bool(counts.label[n]) is label and wrong[n] > 0]
    rows.sort(key=lambda n: (-wrong[n], counts.pairs[n].pair_id))
    votes = _by_pair(counts)
    return [_case(counts, n, votes, lambda vote: vote.verdict is (not label)) for n in rows[:most]]


def disagreements(first: VoteCounts, second: VoteCounts, most: int) -> list[Split]:
    """Pairs on which the share of right votes differs most: up to `most` where the second is better, then the first.

    Raises:
        DataError: the two have no pair in common.
    """
    one, two = common(first, second)
    gains = (two.right - one.right).tolist()
    rows = sorted(range(len(gains)), key=lambda n: (-gains[n], one.pairs[n].pair_id))
    chosen = [n for n in rows[:most] if gains[n] > 0] + [n for n in rows[::-1][:most] if gains[n] < 0]
    votes = _by_pair(one), _by_pair(two)

    def case(counts: VoteCounts, n: int, of: dict[str, list[Vote]], right: bool) -> Case:
        label = counts.pairs[n].label
        return _case(counts, n, of, lambda vote: (vote.verdict is label) is right)

    return [
        Split(
            first=case(one, n, votes[0], gains[n] < 0),
            second=case(two, n, votes[1], gains[n] > 0),
            gain=gains[n],
        )
        for n in chosen
    ]


def _by_pair(counts: VoteCounts) -> dict[str, list[Vote]]:
    votes: defaultdict[str, list[Vote]] = defaultdict(list)
    for vote in counts.votes:
        votes[vote.pair_id].append(vote)
    return votes


def _case(counts: VoteCounts, n: int, votes: dict[str, list[Vote]], shows: Callable[[Vote], bool]) -> Case:
    pair = counts.pairs[n]
    # those that show it first, then those with a text; a stable sort keeps the order of samples
    ordered = sorted(votes[pair.pair_id], key=lambda vote: (not shows(vote), vote.trace is None))
    return Case(
        pair=pair,
        accepted=int(counts.accepted[n]),
        rejected=int(counts.rejected[n]),
        missing=int(counts.missing[n]),
        vote=ordered[0] if ordered else None,
    )
