"""What a set is, and what every set is checked for before anything is asked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pv_eval.votes import Pair
from pv_judge.pages.text import plain
from pv_rl.errors import DataError

__all__ = ["Candidate", "EvalSet", "LeftOut", "build_set"]

SHOWN = 3
RULES = 10
"""So many are named."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A pair that may be part of a set."""

    pair: Pair
    rule: str = ""
    """Where its label is from: `human`, `points 7 or more of 7`, `unanimous 5 of 5`. Empty: not said."""
    problem_ids: frozenset[str] = frozenset()
    """Ids of its problem in data sets of pv-data, for a comparison with a training set."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A row that is no pair, and why."""

    row: str
    """Which one: file and line, or an id."""
    reason: str
    """A few words, for counting."""


@dataclass(frozen=True, kw_only=True)
class EvalSet:
    """Labelled pairs that can be asked about."""

    name: str
    """By the paper's names (`curated`, `opc`, `proofbench`, `style`, `error_types`) its numbers go beside ours."""
    pairs: tuple[Pair, ...]
    """In the order of the source; ids are unique, labels are there."""
    rule_of: Mapping[str, str]
    """By pair id, the rule of its label; empty where it is not said."""
    left_out: Mapping[str, int]
    """Rows by the reason why they are no pair here."""
    notes: tuple[str, ...] = ()
    """Sentences for the report."""
    problem_ids: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By `question_id`, see `Candidate`."""

    @property
    def rules(self) -> dict[str, int]:
        """Pairs by the rule of their label."""
        return dict(Counter(self.rule_of[pair.pair_id] for pair in self.pairs).most_common())

    def only(self, kept: Container[str], note: str, *, reason: str = "") -> EvalSet:
        """The pairs whose ids are kept; `note` says why, and with a `reason` the others are counted as left out."""
        pairs = tuple(pair for pair in self.pairs if pair.pair_id in kept)
        gone = {reason: len(self.pairs) - len(pairs)} if reason else {}
        return replace(self, pairs=pairs, left_out={**self.left_out, **gone}, notes=(*self.notes, note))

    @property
    def counts(self) -> dict[str, int]:
        """Pairs, questions, right and wrong proofs."""
        right = sum(pair.label is True for pair in self.pairs)
        return {
            "pairs": len(self.pairs),
            "questions": len({pair.question_id for pair in self.pairs}),
            "right": right,
            "wrong": len(self.pairs) - right,
        }

    def said(self) -> tuple[str, ...]:
        """All that a reader of its numbers has to know."""
        counts = ", ".join(f"{number} {what}" for what, number in self.counts.items())
        shown = [f"{plain(rule, 80) or 'not said'}: {number}" for rule, number in self.rules.items()]
        more = [f"{len(shown) - RULES} further rules"] if len(shown) > RULES else []
        rules = "; ".join([*shown[:RULES], *more])
        left = "; ".join(f"{reason}: {number}" for reason, number in self.left_out.items())
        return (
            f"The set has {counts}.",
            f"Labels by rule: {rules}.",
            f"Left out of the set: {left}." if left else "No row was left out of the set.",
            *self.notes,
        )


def build_set(
    name: str, rows: Iterable[Candidate | LeftOut], *, rule: str | None = None, notes: Iterable[str] = ()
) -> EvalSet:
    """Check rows and make them a set.

    Left out and counted: pairs without a label, with a blank question or proof, and, with `rule`, with a label by
    another rule. Refused: a pair id that is there twice, the same proof of a question with both labels, and a set
    without a pair. Flagged in the notes: labels by several rules, a single class, a proof that is there twice.

    Args:
        rule: keep only labels by this rule.

    Raises:
        DataError: it is refused; the text counts what is wrong.
    """
    left: Counter[str] = Counter()
    kept: list[Candidate] = []
    for row in rows:
        reason = row.reason if isinstance(row, LeftOut) else _unfit(row, rule)
        if reason:
            left[reason] += 1
        elif isinstance(row, Candidate):
            kept.append(row)
    pairs = tuple(one.pair for one in kept)
    if not pairs:
        said = "; ".join(f"{reason}: {number}" for reason, number in left.most_common()) or "it has no rows"
        raise DataError(
            f"the set {name} has no pair with a label ({said}). Give another file, or other options"
        )
    _refuse_twice(name, pairs)
    ids: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for one in kept:
        ids[one.pair.question_id] |= one.problem_ids
    return EvalSet(
        name=name,
        pairs=pairs,
        rule_of={one.pair.pair_id: one.rule for one in kept},
        left_out=dict(left.most_common()),
        notes=(*notes, *_flags(pairs, len({one.rule for one in kept}))),
        problem_ids=dict(ids),
    )


def _unfit(row: Candidate, rule: str | None) -> str:
    if row.pair.label is None:
        return "no label"
    if not row.pair.question.strip():
        return "blank question"
    if not row.pair.proof.strip():
        return "blank proof"
    return "label by another rule" if rule is not None and row.rule != rule else ""


def _refuse_twice(name: str, pairs: tuple[Pair, ...]) -> None:
    twice = [pair_id for pair_id, times in Counter(pair.pair_id for pair in pairs).items() if times > 1]
    if twice:
        raise DataError(
            f"the set {name} has {len(twice)} pair ids more than once ({_examples(twice)}); give each pair one id"
        )
    both = [pair_id for pair_id, labels in _same_proof(pairs) if len(labels) == 2]
    if both:
        raise DataError(
            f"the set {name} has {len(both)} proofs that are labelled right and wrong for the same question "
            f"({_examples(both)}); correct the labels, or take these proofs out"
        )


def _same_proof(pairs: tuple[Pair, ...]) -> list[tuple[str, set[bool | None]]]:
    """Proofs that are there more than once: the first pair's id, and their labels."""
    same: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        same[pair.question_id, " ".join(pair.proof.split())].append(pair)
    return [(group[0].pair_id, {pair.label for pair in group}) for group in same.values() if len(group) > 1]


def _flags(pairs: tuple[Pair, ...], rules: int) -> list[str]:
    found: list[str] = []
    if rules > 1:
        found.append(f"Labels are by {rules} different rules; see their counts.")
    if len({pair.label for pair in pairs}) == 1:
        word = "right" if pairs[0].label else "wrong"
        found.append(f"All {len(pairs)} proofs are {word}: a verifier that always says so has accuracy 1.")
    if again := _same_proof(pairs):
        found.append(f"{len(again)} proofs of a question are there more than once ({_examples(again)}).")
    return found


def _examples(names: Iterable[str] | Iterable[tuple[str, object]]) -> str:
    listed = [name if isinstance(name, str) else name[0] for name in names]
    return ", ".join(repr(name[:60]) for name in listed[:SHOWN]) + (", ..." if len(listed) > SHOWN else "")
