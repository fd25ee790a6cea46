"""What is wrong with a set of pairs and votes: refused where a number would be wrong, else set aside and counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pv_eval.votes import Pair, Vote
from pv_rl.errors import DataError

__all__ = ["Checked", "Finding", "check"]

SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of thing that is wrong with a set."""

    what: str
    """In plain words, with what was done about it."""
    number: int
    """Of pairs, votes or questions, as `what` says."""
    examples: tuple[str, ...] = ()
    """Some of their names."""
    more: bool = False
    """Whether there are other names."""
    refused: bool = False
    """Whether no number can be trusted with it."""

    def __str__(self) -> str:
        names = [repr(name[:60]) for name in self.examples] + ["..."] * self.more
        return f"{self.number} {self.what}" + (f" ({', '.join(names)})" if self.examples else "")


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Pairs that have a label and votes, their votes, and what was found."""

    pairs: tuple[Pair, ...]
    votes: tuple[Vote, ...]
    """In the order of `pairs`, then of the sample."""
    problems: tuple[Finding, ...]

    def refuse(self) -> Checked:
        """Itself, if its numbers can be trusted.

        Raises:
            DataError: they cannot; it names every reason.
        """
        reasons = [str(problem) for problem in self.problems if problem.refused]
        if not self.pairs:
            reasons += [str(problem) for problem in self.problems if not problem.refused]
            reasons.append("no pair is left that has a label and votes")
        if reasons:
            raise DataError(
                f"this set cannot be evaluated: {'; '.join(reasons)}. Mend the set and evaluate again"
            )
        return self


def check(pairs: Iterable[Pair], votes: Iterable[Vote]) -> Checked:
    """Look at a whole set.

    Refused (`Checked.refuse` raises): a pair that is there twice, a vote that is there twice (same pair and sample), a
    vote whose question is not that of its pair, the same proof of the same question with both labels, and a
    set without weight.
    Set aside: pairs without a label (with their votes), pairs without votes, votes without a pair.
    Flagged: pairs with unequal numbers of samples, a proof that is there twice, a question with several texts,
    only one class, only one question, votes without a verdict in all samples of a pair.
    """
    all_pairs, all_votes = list(pairs), list(votes)
    found: list[Finding] = []
    note = partial(_note, found)
    by_id = {pair.pair_id: pair for pair in all_pairs}
    note(_twice(pair.pair_id for pair in all_pairs), "pair names that are there more than once", refused=True)
    keys = Counter((vote.pair_id, vote.sample) for vote in all_votes)
    note(
        (name for (name, _), times in keys.items() if times > 1),
        "votes whose pair and sample number are there more than once",
        refused=True,
    )
    known = [vote for vote in all_votes if vote.pair_id in by_id]
    note(
        (vote.pair_id for vote in known if vote.question_id != by_id[vote.pair_id].question_id),
        "votes that name another question than their pair",
        refused=True,
    )
    note((vote.pair_id for vote in all_votes if vote.pair_id not in by_id), "votes without a pair, left out")
    note(
        (name for name, pair in by_id.items() if pair.label is None),
        "pairs without a label, left out with their votes",
    )
    of_pair: defaultdict[str, list[Vote]] = defaultdict(list)
    for vote in known:
        of_pair[vote.pair_id].append(vote)
    labelled = [pair for pair in by_id.values() if pair.label is not None]
    note((pair.pair_id for pair in labelled if pair.pair_id not in of_pair), "pairs without votes, left out")
    kept = [pair for pair in labelled if pair.pair_id in of_pair]
    _look_at_texts(kept, found)
    numbers = Counter(len(of_pair[pair.pair_id]) for pair in kept)
    if len(numbers) > 1:
        usual = max(numbers, key=lambda number: (numbers[number], number))
        odd = (pair.pair_id for pair in kept if len(of_pair[pair.pair_id]) != usual)
        note(odd, f"pairs that have another number of samples than {usual}; a pair counts by its mean")
    note(
        (pair.pair_id for pair in kept if all(vote.verdict is None for vote in of_pair[pair.pair_id])),
        "pairs without a verdict in any sample; they count as wrong",
    )
    if kept:
        _look_at_set(kept, found)
    ordered = tuple(
        vote for pair in kept for vote in sorted(of_pair[pair.pair_id], key=lambda vote: vote.sample)
    )
    return Checked(pairs=tuple(kept), votes=ordered, problems=tuple(found))


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _note(found: list[Finding], names: Iterable[str], what: str, *, refused: bool = False) -> None:
    """Add a finding, unless there are no names."""
    listed = list(names)
    if listed:
        different = sorted(set(listed))
        found.append(
            Finding(
                what=what,
                number=len(listed),
                examples=tuple(different[:SHOWN]),
                more=len(different) > SHOWN,
                refused=refused,
            )
        )


def _look_at_texts(pairs: Sequence[Pair], found: list[Finding]) -> None:
    """Proofs that are there twice, and questions with several texts. Blank texts are not compared."""
    note = partial(_note, found)
    same: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        if pair.proof.strip():
            same[pair.question_id, " ".join(pair.proof.split())].append(pair)
        if pair.question.strip():
            texts[pair.question_id].add(" ".join(pair.question.split()))
    groups = [group for group in same.values() if len(group) > 1]
    both = [group for group in groups if len({pair.label for pair in group}) > 1]
    note(
        (pair.pair_id for group in both for pair in group),
        "pairs with the same proof of the same question as another, and the other label",
        refused=True,
    )
    note(
        (pair.pair_id for group in groups if group not in both for pair in group[1:]),
        "pairs whose proof of the same question is there already; each counts",
    )
    note((name for name, several in texts.items() if len(several) > 1), "questions that have several texts")


def _look_at_set(pairs: Sequence[Pair], found: list[Finding]) -> None:
    if not any(pair.weight for pair in pairs):
        found.append(Finding(what="pairs, all of weight 0", number=len(pairs), refused=True))
    labels = {pair.label for pair in pairs}
    if len(labels) == 1:
        word = "right" if labels == {True} else "wrong"
        found.append(
            Finding(
                what=f"pairs, all {word} proofs: numbers that need both classes are none", number=len(pairs)
            )
        )
    if len({pair.question_id for pair in pairs}) == 1:
        found.append(Finding(what="pairs of one question only: no interval can be given", number=len(pairs)))
