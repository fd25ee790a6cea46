"""From proofs and what is said of them to the triples of a data set, one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pv_data.export.winning import LabelRules, LeftOut, Panel, winner
from pv_data.records import Aside, AuditMark, Problem, Proof, Qpc
from pv_data.splits import Splits, text_key
from pv_rl.errors import DataError

__all__ = ["kept_apart", "triples"]


def triples(
    proofs: Iterable[Proof],
    *,
    problems: Mapping[str, Problem],
    splits: Splits,
    labels: Mapping[str, Panel],
    marks: Mapping[str, Sequence[AuditMark]],
    rules: LabelRules,
) -> Iterator[Qpc | Aside]:
    """A triple for each proof that has a label, or why it is left out.

    A proof of which the panel could make no label is never trained on, even where its label is known otherwise: the
    training set keeps consistent labels only. The test set keeps it if people or its source say what it is.

    Args:
        problems: by id.
        labels: of the panel, by proof id.
        marks: by proof id, one an auditor.
    """
    seen: set[str] = set()
    for proof in proofs:
        problem = problems.get(proof.problem_id)
        made = (
            LeftOut(reason="no problem", detail=f"its problem {proof.problem_id} is not in the run")
            if problem is None
            else LeftOut(reason="twice")
            if proof.id in seen
            else _triple(proof, problem, splits, labels.get(proof.id), marks.get(proof.id, ()), rules)
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
) -> Qpc | LeftOut:
    split = splits.of(problem.id)
    order = rules.train if split == "train" else rules.test
    won = winner(proof, panel, marks, order, discarded=proof.slice in rules.discarded)
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
