"""Checks of a set of pairs and votes: refuses what would make a number wrong; leaves out or flags the rest, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pv_eval.votes import Pair, Vote
from pv_judge.pages.text import counted
from pv_rl.errors import DataError
from pv_verdicts.formats import Truth

__all__ = ["Checked", "Finding", "check", "imply_labels", "same_proofs"]

SHOWN = 3
WORDS: dict[Truth, tuple[str, str, str]] = {
    "label": ("label", "a verdict", "they count as wrong"),
    "grade": ("grade", "a grade", "they count as missing and as not exact"),
    "first_error": ("first wrong step", "an answer", "they count as wrong"),
}
"""Of each truth: its name, the name of the answer in a vote, and what happens to a pair without any answer."""
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of problem of a set."""

    what: str
    """In words, with what `check` did about it."""
    number: int
    """Of pairs, votes or questions, as `what` names them."""
    examples: tuple[str, ...] = ()
    """Some of their ids."""
    more: bool = False
    """Whether there are other ids."""
    refused: bool = False
    """Whether the set cannot be evaluated because of it."""

    def __str__(self) -> str:
        names = [repr(name[:60]) for name in self.examples] + ["..."] * self.more
        return counted(self.number, self.what) + (f" ({', '.join(names)})" if self.examples else "")


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Pairs that have the truth (a label, or what `check` was asked for) and votes, their votes, and the problems."""

    pairs: tuple[Pair, ...]
    votes: tuple[Vote, ...]
    """In the order of `pairs`, then of the sample."""
    problems: tuple[Finding, ...]
    truth: Truth = "label"

    def refuse(self) -> Checked:
        """Itself, if its numbers can be trusted.

        Raises:
            DataError: they cannot; the text has every reason.
        """
        reasons = [str(problem) for problem in self.problems if problem.refused or not self.pairs]
        if not self.pairs:
            reasons.append(f"no pair is left that has a {WORDS[self.truth][0]} and votes")
        if reasons:
            raise DataError(
                f"this set cannot be evaluated: {'; '.join(reasons)}. Correct the set and evaluate again"
            )
        return self


def check(pairs: Iterable[Pair], votes: Iterable[Vote], truth: Truth = "label") -> Checked:
    """Check a whole set.

    Args:
        pairs: of the set.
        votes: of one verifier.
        truth: what votes are compared with: `label`, `grade` or `first_error`. Pairs without it are left out.

    Refused (`Checked.refuse` raises): a duplicate pair id, a duplicate vote (same pair and sample), a vote whose
    question is not that of its pair, the same proof of a question with both labels, and a set without weight.
    Left out: pairs without the truth (with their votes), pairs without votes, votes without a pair.
    Flagged: pairs with unequal numbers of samples, a repeated proof, several grades of one proof, a question with
    several texts, only one class, only one question, pairs without a verdict in any sample.
    """
    name, answer, consequence = WORDS[truth]
    all_pairs, all_votes = list(pairs), list(votes)
    found: list[Finding] = []

    def note(names: Iterable[str], what: str, *, refused: bool = False) -> None:
        """Add a finding, unless there are no names."""
        listed = list(names)
        different = sorted(set(listed))
        if listed:
            found.append(
                Finding(
                    what=what,
                    number=len(listed),
                    examples=tuple(different[:SHOWN]),
                    more=len(different) > SHOWN,
                    refused=refused,
                )
            )

    by_id = {pair.pair_id: pair for pair in all_pairs}
    note(_repeated(pair.pair_id for pair in all_pairs), "ids of more than one pair", refused=True)
    keys = _repeated((vote.pair_id, vote.sample) for vote in all_votes)
    note((name for name, _ in keys), "votes with the pair and the sample number of another", refused=True)
    known = [vote for vote in all_votes if vote.pair_id in by_id]
    odd = (vote.pair_id for vote in known if vote.question_id != by_id[vote.pair_id].question_id)
    note(odd, "votes with another question than their pair", refused=True)
    note((vote.pair_id for vote in all_votes if vote.pair_id not in by_id), "votes without a pair, left out")
    unlabelled = (name for name, pair in by_id.items() if getattr(pair, truth) is None)
    note(unlabelled, f"pairs without a {name}, left out with their votes")
    of_pair: defaultdict[str, list[Vote]] = defaultdict(list)
    for vote in known:
        of_pair[vote.pair_id].append(vote)
    labelled = [pair for pair in by_id.values() if getattr(pair, truth) is not None]
    note((pair.pair_id for pair in labelled if pair.pair_id not in of_pair), "pairs without votes, left out")
    kept = [pair for pair in labelled if pair.pair_id in of_pair]
    groups = same_proofs(kept)
    both = [group for group in groups if len({getattr(pair, truth) for pair in group}) > 1]
    other = "the other label" if truth == "label" else f"another {name}"
    counts = "; each grading counts" if truth == "grade" else ""
    note(
        (pair.pair_id for group in both for pair in group),
        f"pairs with the same proof of the same question as another, and {other}{counts}",
        refused=truth != "grade",
    )
    again = (pair.pair_id for group in groups if group not in both for pair in group[1:])
    note(again, "pairs with the proof of another pair of the question; each counts")
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for pair in kept:
        if pair.question.strip():
            texts[pair.question_id].add(" ".join(pair.question.split()))
    note((name for name, several in texts.items() if len(several) > 1), "questions with several texts")
    numbers = Counter(len(of_pair[pair.pair_id]) for pair in kept)
    if len(numbers) > 1:
        usual = max(numbers, key=lambda number: (numbers[number], number))
        odd = (pair.pair_id for pair in kept if len(of_pair[pair.pair_id]) != usual)
        note(odd, f"pairs with another number of samples than {usual}; a pair counts by its mean")
    field = "verdict" if truth == "label" else truth
    silent = (p.pair_id for p in kept if all(getattr(vote, field) is None for vote in of_pair[p.pair_id]))
    note(silent, f"pairs without {answer} in any sample; {consequence}")
    ordered = (vote for pair in kept for vote in sorted(of_pair[pair.pair_id], key=lambda vote: vote.sample))
    problems = (*found, *_of_all(kept, truth))
    return Checked(pairs=tuple(kept), votes=tuple(ordered), problems=problems, truth=truth)


def imply_labels(
    pairs: Sequence[Pair], accept: float | None = None
) -> tuple[list[Pair], tuple[Finding, ...]]:
    """The pairs of a set without any label, labelled by what is known: right without a wrong step, or from a grade on.

    A set with a label is returned as it is: its rule may leave grades between right and wrong without one. A proof that
    is right by one grading and wrong by another gets no label.

    Args:
        pairs: of the set.
        accept: share of the full points from which a proof is right, above 0, where the verifier gave grades. None: a
            first wrong step is looked at first, then whether a grade is full points.
    """
    least = 1.0 if accept is None else accept

    def label(pair: Pair) -> bool | None:
        if pair.grade is not None and (accept is not None or pair.first_error is None):
            return pair.grade >= least - 1e-9
        return None if pair.first_error is None else pair.first_error == 0

    if any(pair.label is not None for pair in pairs):
        return list(pairs), ()
    implied = [replace(pair, label=label(pair)) for pair in pairs]
    split = {
        pair.pair_id
        for group in same_proofs(implied)
        for pair in group
        if len({one.label for one in group}) > 1
    }
    implied = [replace(pair, label=None) if pair.pair_id in split else pair for pair in implied]
    number = sum(pair.label is not None for pair in implied)
    what = f"pairs without a label: right without a wrong step, or with {100 * least:.4g} % of the points"
    return implied, (Finding(what=what, number=number),) if number else ()


def same_proofs(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Groups of two or more pairs of one question with, up to white space, the same proof that is not blank."""
    same: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.proof.strip():
            same[pair.question_id, " ".join(pair.proof.split())].append(pair)
    return [group for group in same.values() if len(group) > 1]


def _repeated(keys: Iterable[Key]) -> list[Key]:
    return [key for key, times in Counter(keys).items() if times > 1]


def _of_all(pairs: Sequence[Pair], truth: Truth) -> Iterable[Finding]:
    """What all pairs have in common."""
    if pairs and not any(pair.weight for pair in pairs):
        yield Finding(what="pairs, all of weight 0", number=len(pairs), refused=True)
    if truth == "grade":
        if len({pair.grade for pair in pairs}) == 1:
            what = "pairs, all with the same grade: no rank correlation can be given"
            yield Finding(what=what, number=len(pairs))
    else:
        labels = {pair.label if truth == "label" else pair.first_error == 0 for pair in pairs}
        if len(labels) == 1:
            word = "right" if labels == {True} else "wrong"
            what = f"pairs, all {word} proofs: numbers that need both classes are none"
            yield Finding(what=what, number=len(pairs))
    if len({pair.question_id for pair in pairs}) == 1:
        yield Finding(what="pairs of one question only: no interval can be given", number=len(pairs))
