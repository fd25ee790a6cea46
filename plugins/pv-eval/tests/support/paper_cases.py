"""Made votes of the paper's sets, whose totals are the numbers that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pv_eval import Pair, RunInfo, Vote, write_run

VOTES = 8


def made_set(name: str, questions: int, wrong_and_right: Sequence[tuple[int, bool, str]]) -> list[Pair]:
    """Pairs of (number, label, slice), in turn of one question after the other."""
    labels = [(label, part) for number, label, part in wrong_and_right for _ in range(number)]
    return [
        Pair(pair_id=f"{name}-{n}", question_id=f"{name}-q{n % questions}", label=label, slice=part)
        for n, (label, part) in enumerate(labels)
    ]


def right_votes(pairs: Sequence[Pair], percent: float) -> list[Vote]:
    """Eight votes a pair, as many of them right as come next to `percent`.

    Where no number of right votes is printed so, the last pair gets seven votes, of which one is right.
    """
    number, odd = len(pairs), 0.0
    total = round(number * VOTES * percent / 100)
    if f"{100 * total / (number * VOTES):.1f}" != f"{percent:.1f}":
        odd = 1 / 7
        total = round(VOTES * (number * percent / 100 - odd))
        number -= 1
        assert f"{100 * (total / VOTES + odd) / len(pairs):.1f}" == f"{percent:.1f}"
    each, more = divmod(total, number)
    votes = []
    for n, pair in enumerate(pairs):
        of, right = (VOTES, each + (n < more)) if n < number else (7, 1)
        votes += [
            Vote(
                pair_id=pair.pair_id,
                question_id=pair.question_id,
                sample=sample,
                verdict=pair.label if sample < right else not pair.label,
            )
            for sample in range(of)
        ]
    return votes


def write_votes(
    folder: Path, verifier: str, set_name: str, pairs: Sequence[Pair], votes: Sequence[Vote]
) -> Path:
    write_run(folder, pairs, votes, RunInfo(verifier=verifier, set_name=set_name, temperature=0.6))
    return folder
