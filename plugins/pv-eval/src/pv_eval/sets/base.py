"""Evaluation set: pairs with a label, a grade or a first wrong step, and the rows left out with the reason.

`build_set` checks every set before anything is asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pv_eval.checks import same_proofs
from pv_eval.votes import Pair
from pv_judge.pages.text import plain, plural
from pv_rl.errors import DataError

if TYPE_CHECKING:
    from pv_data.export.prompt import VerifierPrompt
    from pv_judge.answer import Messages
    from pv_verdicts import VerdictFormat

__all__ = ["Candidate", "EvalSet", "LeftOut", "build_set", "in_words", "messages_of"]

SHOWN = 3
RULES = 10
"""Most rules that a set's description names."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A pair that may be part of a set."""

    pair: Pair
    rule: str = ""
    """Where its label is from: `human`, `points 7 or more of 7`, `unanimous 5 of 5`. Empty: unknown."""
    problem_ids: frozenset[str] = frozenset()
    """Ids of its problem in data sets of pv-data, for a comparison with a training set."""
    full: float | None = None
    """Full points of its grade; None where they are unknown."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A row that is not a pair, and why."""

    row: str
    """Which one: file and line, or an id."""
    reason: str
    """A few words; rows are counted by them."""


@dataclass(frozen=True, kw_only=True)
class EvalSet:
    """Pairs with a known truth that can be asked about."""

    name: str
    """The report shows the paper's numbers for `curated`, `opc`, `proofbench`, `style` and `error_types`."""
    pairs: tuple[Pair, ...]
    """In the order of the source; ids are unique, and every pair has a label, a grade or a first wrong step."""
    rule_of: Mapping[str, str]
    """By pair id, the rule of its label; empty where it is unknown."""
    left_out: Mapping[str, int]
    """Rows by the reason why they are not pairs."""
    notes: tuple[str, ...] = ()
    """Sentences for the report."""
    problem_ids: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By `question_id`, see `Candidate`."""
    full: frozenset[float] = frozenset()
    """Full points of the grades, as far as they are known."""

    @property
    def rules(self) -> dict[str, int]:
        """Pairs by the rule of their label."""
        return dict(Counter(self.rule_of[pair.pair_id] for pair in self.pairs).most_common())

    def only(self, kept: Container[str], note: str, *, reason: str = "") -> EvalSet:
        """The pairs whose ids are in `kept`; `note` explains it, and with a `reason` the others count as left out."""
        pairs = tuple(pair for pair in self.pairs if pair.pair_id in kept)
        gone = {reason: len(self.pairs) - len(pairs)} if reason else {}
        return replace(self, pairs=pairs, left_out={**self.left_out, **gone}, notes=(*self.notes, note))

    @property
    def counts(self) -> dict[str, int]:
        """Pairs, questions, right and wrong proofs; and where there are some, pairs by the rest of their truth."""
        labels = Counter(pair.label for pair in self.pairs)
        rest = {
            "without a label": labels[None],
            "graded": sum(pair.grade is not None for pair in self.pairs),
            "with a known first error": sum(pair.first_error is not None for pair in self.pairs),
        }
        return {
            "pairs": len(self.pairs),
            "questions": len({pair.question_id for pair in self.pairs}),
            "right": labels[True],
            "wrong": labels[False],
            **{what: number for what, number in rest.items() if number},
        }

    def labelled(self) -> EvalSet:
        """The pairs that have a label, for what needs one; the others count as left out."""
        kept = {pair.pair_id for pair in self.pairs if pair.label is not None}
        if len(kept) == len(self.pairs):
            return self
        if not kept:
            raise DataError(
                f"no pair of the set {self.name} has a label, right or wrong. Give points a rule (positive=, "
                "negative=), or another set"
            )
        return self.only(kept, "Pairs without a label are left out.", reason="no label")

    def describe(self) -> tuple[str, ...]:
        """Description of the set: sentences that a reader of its numbers needs."""
        counts = ", ".join(
            plural(number, what.removesuffix("s")) if what in ("pairs", "questions") else f"{number} {what}"
            for what, number in self.counts.items()
        )
        shown = [f"{plain(rule, 80) or 'unknown'}: {number}" for rule, number in self.rules.items()]
        more = [f"{len(shown) - RULES} further rules"] if len(shown) > RULES else []
        left = in_words(self.left_out)
        rules = [f"Labels by rule: {'; '.join([*shown[:RULES], *more])}."] if any(self.rules) else []
        return (
            f"The set has {counts}.",
            *rules,
            f"Left out of the set: {left}." if left else "No row was left out of the set.",
            *self.notes,
        )


def build_set(
    name: str, rows: Iterable[Candidate | LeftOut], *, rule: str | None = None, notes: Iterable[str] = ()
) -> EvalSet:
    """Check rows and make a set of them.

    Left out and counted: pairs without any truth (label, grade or first wrong step), with a blank question or proof,
    and, with `rule`, with a label by another rule. Refused: a pair id that occurs twice, the same proof of a question
    with both labels, and a set without a pair. Flagged in the notes: labels by several rules, a single class, a
    repeated proof.

    Args:
        rule: keep only labels by this rule.

    Raises:
        DataError: it is refused; the text counts what is wrong.
    """
    left: Counter[str] = Counter()
    kept: list[Candidate] = []
    for row in rows:
        if isinstance(row, LeftOut):
            left[row.reason] += 1
        elif reason := _unfit(row, rule):
            left[reason] += 1
        else:
            kept.append(row)
    pairs = tuple(one.pair for one in kept)
    if not pairs:
        reasons = in_words(dict(left.most_common())) or "it has no rows"
        raise DataError(
            f"the set {name} has no pair with a label, a grade or a first wrong step ({reasons}). Give another file, "
            "or other options"
        )
    ids: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for one in kept:
        ids[one.pair.question_id] |= one.problem_ids
    return EvalSet(
        name=name,
        pairs=pairs,
        rule_of={one.pair.pair_id: one.rule for one in kept},
        left_out=dict(left.most_common()),
        notes=(*notes, *_notes(name, pairs, len({one.rule for one in kept}))),
        problem_ids=dict(ids),
        full=frozenset(one.full for one in kept if one.full is not None),
    )


def _unfit(row: Candidate, rule: str | None) -> str:
    if row.pair.label is None and row.pair.grade is None and row.pair.first_error is None:
        return "no label"
    if not row.pair.question.strip():
        return "blank question"
    if not row.pair.proof.strip():
        return "blank proof"
    return "label by another rule" if rule is not None and row.rule != rule else ""


def _notes(name: str, pairs: tuple[Pair, ...], rules: int) -> list[str]:
    """Flags of a set.

    Raises:
        DataError: a pair id occurs twice, or a proof has both labels.
    """
    twice = [pair_id for pair_id, times in Counter(pair.pair_id for pair in pairs).items() if times > 1]
    if twice:
        raise DataError(
            f"the set {name} has {plural(len(twice), 'pair id')} more than once ({_examples(twice)}); give "
            "each pair one id"
        )
    groups = same_proofs(pairs)
    both = [group[0].pair_id for group in groups if {True, False} <= {pair.label for pair in group}]
    if both:
        raise DataError(
            f"the set {name} has {plural(len(both), 'proof')} labelled both right and wrong for the same question "
            f"({_examples(both)}); correct the labels, or remove these proofs"
        )
    found: list[str] = []
    if rules > 1:
        found.append(f"Labels are by {rules} different rules; see their counts.")
    labels = {pair.label for pair in pairs} - {None}
    if len(labels) == 1:
        word, all_of = "right" if True in labels else "wrong", sum(pair.label is not None for pair in pairs)
        found.append(f"All {all_of} proofs are {word}: a verifier that always says so has accuracy 1.")
    if groups:
        again = _examples([group[0].pair_id for group in groups])
        found.append(f"{plural(len(groups), 'proof')} of a question given more than once ({again}).")
    return found


def in_words(counts: Mapping[str, int]) -> str:
    """`no label: 3; blank proof: 1`."""
    return "; ".join(f"{reason}: {number}" for reason, number in counts.items())


def _examples(names: list[str]) -> str:
    return ", ".join(repr(name[:60]) for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


def messages_of(pair: Pair, prompt: VerifierPrompt, form: VerdictFormat) -> Messages:
    """What a verifier is asked about a pair: all of the pair that the prompt has a place for."""
    return prompt.messages(
        pair.question,
        pair.proof,
        steps=pair.steps,
        reference=pair.reference,
        rubric=pair.rubric,
        grades=form.grades,
    )
