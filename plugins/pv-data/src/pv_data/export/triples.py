"""Question-proof-check triples: from proofs and all their labels to the rows of a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pv_data.audit.marks import majority
from pv_data.records import Aside, AuditMark, Label, Problem, Proof, Qpc
from pv_data.splits import Splits, text_key
from pv_rl.errors import ConfigError, DataError

__all__ = [
    "AUTHORITIES",
    "DISCARDED",
    "LabelRules",
    "LeftOut",
    "Panel",
    "Won",
    "contradicted",
    "kept_apart",
    "panel_labels",
    "triples",
    "winner",
]


AUTHORITIES = ("audit", "known", "panel")
"""`audit`: people who marked the proof in the audit. `known`: its source, or how it was made. `panel`: the judges."""
DISCARDED = "slice not accepted"


@dataclass(frozen=True, kw_only=True)
class LabelRules:
    """Whose label counts, the first that there is; one that is not named does not count."""

    train: tuple[str, ...] = AUTHORITIES
    test: tuple[str, ...] = AUTHORITIES
    """`("audit",)` makes a test set that people have read throughout, as the paper's."""
    discarded: frozenset[str] = frozenset()
    """Slices that failed their audit: the panel's labels do not count there."""

    def __post_init__(self) -> None:
        for split, order in (("train", self.train), ("test", self.test)):
            if not order or set(order) - set(AUTHORITIES) or len(set(order)) < len(order):
                raise ConfigError(
                    f"labels for {split} by {', '.join(order) or 'nobody'}; name each of "
                    f"{', '.join(AUTHORITIES)} once at most, in the order in which they count"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """What of a `Label` the export needs. Few differ, so that a hundred thousand take little memory."""

    value: bool | None
    rule: str
    votes: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class Won:
    """A label, and whose."""

    label: bool
    rule: str
    """`audit: 2 of 2`, `known: final answer`, `panel: unanimous 5 of 5`."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """There is none."""

    reason: str
    detail: str = ""


def panel_labels(labels: Iterable[Label]) -> dict[str, Panel]:
    """By proof id.

    Raises:
        DataError: two different labels of one proof.
    """
    same: dict[Panel, Panel] = {}
    found: dict[str, Panel] = {}
    for label in labels:
        panel = Panel(value=label.value, rule=label.rule, votes=label.votes)
        panel = same.setdefault(panel, panel)
        if found.setdefault(label.proof_id, panel) != panel:
            raise DataError(
                f"the proof {label.proof_id} has two labels that differ; export one run at a time"
            )
    return found


def contradicted(proofs: Iterable[Proof], problems: Mapping[str, Problem]) -> set[str]:
    """Ids of the proofs whose text is right by one row and wrong by another, whoever wrote it and wherever it was read.

    Args:
        problems: by id.
    """
    questions = {problem.id: text_key(problem.text) for problem in problems.values()}
    known: dict[tuple[str, str], set[bool]] = {}
    ids: dict[tuple[str, str], list[str]] = {}
    for proof in proofs:
        if proof.known is not None and proof.problem_id in questions:
            text = questions[proof.problem_id], text_key(proof.text)
            known.setdefault(text, set()).add(proof.known)
            ids.setdefault(text, []).append(proof.id)
    return {one for text, labels in known.items() if len(labels) > 1 for one in ids[text]}


def winner(
    proof: Proof,
    panel: Panel | None,
    marks: Sequence[AuditMark],
    order: Sequence[str],
    *,
    discarded: bool,
    doubted: bool = False,
) -> Won | LeftOut:
    """The label of the first authority that has one.

    Auditors decide by majority. Where they have none nobody else decides for them: the proof is left out.

    Args:
        marks: one an auditor.
        order: of `AUTHORITIES`.
        discarded: whether the proof's slice failed its audit.
        doubted: whether rows of the sources differ on the label, so that what is known does not count.
    """
    for authority in order:
        if authority == "audit" and marks:
            said = Counter(mark.human for mark in marks)
            human, number = majority(marks), len(marks)
            if human is None:
                unsure = f", {said[None]} cannot tell" if said[None] else ""
                detail = f"{said[True]} of {number} find it right{unsure}"
                return LeftOut(
                    reason="nobody could tell" if said[None] == number else "auditors disagree", detail=detail
                )
            return Won(label=human, rule=f"audit: {said[human]} of {number}")
        if authority == "known" and proof.known is not None and not doubted:
            return Won(label=proof.known, rule=f"known: {proof.known_by or 'not said how'}")
        if authority == "panel" and panel is not None and panel.value is not None and not discarded:
            return Won(label=panel.value, rule=f"panel: {panel.rule}")
    if doubted and (panel is None or panel.value is None):
        return LeftOut(reason="known labels differ", detail=f"{proof.known} by this row, not by another one")
    if panel is None:
        return LeftOut(reason="no label", detail="neither marked, nor known, nor judged")
    if panel.value is None:
        return LeftOut(reason="judges disagree", detail=f"{sum(panel.votes)} of {len(panel.votes)} accept it")
    if discarded:
        return LeftOut(reason=DISCARDED, detail=proof.slice)
    return LeftOut(reason="label of the panel only", detail=panel.rule)


def triples(
    proofs: Iterable[Proof],
    *,
    problems: Mapping[str, Problem],
    splits: Splits,
    labels: Mapping[str, Panel],
    marks: Mapping[str, Sequence[AuditMark]],
    rules: LabelRules,
    doubted: Collection[str] = (),
) -> Iterator[Qpc | Aside]:
    """A triple for each proof that has a label, or why it is left out.

    A proof of which the panel could make no label is never trained on, even where its label is known otherwise: the
    training set keeps consistent labels only. The test set keeps it if people or its source say what it is.

    Args:
        problems: by id.
        labels: of the panel, by proof id.
        marks: by proof id, one an auditor.
        doubted: ids of proofs whose known label does not count, such as those of `contradicted`.
    """
    seen: set[str] = set()
    for proof in proofs:
        problem = problems.get(proof.problem_id)
        made = (
            LeftOut(reason="no problem", detail=f"its problem {proof.problem_id} is not in the run")
            if problem is None
            else LeftOut(reason="twice")
            if proof.id in seen
            else _triple(
                proof,
                problem,
                splits,
                labels.get(proof.id),
                marks.get(proof.id, ()),
                rules,
                doubted=proof.id in doubted,
            )
        )
        seen.add(proof.id)
        if isinstance(made, LeftOut):
            made = Aside(stage="export", row=proof.id, reason=made.reason, detail=made.detail)
        yield made


def _triple(
    proof: Proof,
    problem: Problem,
    splits: Splits,
    panel: Panel | None,
    marks: Sequence[AuditMark],
    rules: LabelRules,
    *,
    doubted: bool,
) -> Qpc | LeftOut:
    split = splits.of(problem.id)
    order = rules.train if split == "train" else rules.test
    won = winner(proof, panel, marks, order, discarded=proof.slice in rules.discarded, doubted=doubted)
    if isinstance(won, LeftOut):
        return won
    votes = panel.votes if panel is not None else ()
    if split == "train" and panel is not None and panel.value is None:
        return LeftOut(reason="judges disagree", detail=f"{sum(votes)} of {len(votes)} accept it; {won.rule}")
    return Qpc(
        problem_id=problem.id,
        proof_id=proof.id,
        problem=problem.text,
        proof=proof.text,
        label=won.label,
        rule=won.rule,
        slice=proof.slice,
        split=split,
        consistent=len(set(votes)) < 2,
        votes=votes,
        licence=problem.licence,
    )


def kept_apart(rows: Iterable[Qpc]) -> Iterator[Qpc]:
    """The same rows; the last check that no problem is in both splits, neither by its id nor by its text.

    Raises:
        DataError: one is.
    """
    split_of: dict[str, str] = {}
    for row in rows:
        for key in (row.problem_id, text_key(row.problem)):
            if split_of.setdefault(key, row.split) != row.split:
                raise DataError(
                    f"the problem {row.problem_id} is in both train and test; split all problems together, with "
                    "their near-duplicates as clusters, and export again"
                )
        yield row
