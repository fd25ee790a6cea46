"""Which label a proof gets, which proofs are kept, and that no problem is in both splits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pv_data.audit.marks import latest_marks
from pv_data.export.triples import (
    LabelRules,
    LeftOut,
    Panel,
    Won,
    contradicted,
    kept_apart,
    panel_labels,
    triples,
    winner,
)
from pv_data.records import Aside, AuditMark, Label, Problem, Proof, Qpc
from pv_data.splits import SplitRules, split_problems
from pv_rl.errors import ConfigError, DataError

PROBLEM = Problem(source="S", native_id="1", text="Show it.", licence="MIT")
PROOF = Proof(problem_id=PROBLEM.id, source="S", method="rephrase", model="m", text="It is so.")
KNOWN = replace(PROOF, known=False, known_by="final answer")
ACCEPTED = Panel(value=True, rule="unanimous 3 of 3", votes=(True, True, True))
SPLIT_VOTE = Panel(value=None, rule="unanimous 3 of 3", votes=(True, False, True))
ORDER = ("audit", "known", "panel")
ANY = LabelRules()


def mark(human: bool | None, auditor: str = "A", time: str = "", proof: Proof = PROOF) -> AuditMark:
    return AuditMark(
        proof_id=proof.id,
        problem_id=PROBLEM.id,
        slice=proof.slice,
        auditor=auditor,
        round=1,
        label=True,
        human=human,
        time=time,
    )


def label_of(proof=PROOF, panel=None, marks=(), order=ORDER, discarded=False):
    return winner(proof, panel, marks, order, discarded=discarded)


def test_people_win_over_what_is_known_and_that_over_the_panel():
    assert label_of(KNOWN, ACCEPTED, [mark(True)]) == Won(label=True, rule="audit: 1 of 1")
    assert label_of(KNOWN, ACCEPTED) == Won(label=False, rule="known: final answer")
    assert label_of(PROOF, ACCEPTED) == Won(label=True, rule="panel: unanimous 3 of 3")


def test_the_order_is_that_of_the_rules_and_who_is_not_named_does_not_count():
    assert label_of(KNOWN, ACCEPTED, order=("panel", "known")) == Won(
        label=True, rule="panel: unanimous 3 of 3"
    )
    assert label_of(KNOWN, SPLIT_VOTE, order=("panel", "known")) == Won(
        label=False, rule="known: final answer"
    )
    assert label_of(KNOWN, None, order=("panel",)) == LeftOut(
        reason="no label", detail="neither marked, nor known, nor judged"
    )
    assert label_of(PROOF, ACCEPTED, order=("audit",)) == LeftOut(
        reason="label of the panel only", detail="unanimous 3 of 3"
    )


def test_auditors_decide_by_majority_and_nobody_decides_for_them():
    three = [mark(True, "A"), mark(False, "B"), mark(False, "C")]
    assert label_of(PROOF, ACCEPTED, three) == Won(label=False, rule="audit: 2 of 3")
    assert label_of(KNOWN, ACCEPTED, three[:2]) == LeftOut(
        reason="auditors disagree", detail="1 of 2 find it right"
    )
    unsure = [mark(True, "A"), mark(None, "B"), mark(True, "C")]
    assert label_of(PROOF, ACCEPTED, unsure) == Won(label=True, rule="audit: 2 of 3")
    assert label_of(PROOF, ACCEPTED, unsure[:2]) == LeftOut(
        reason="auditors disagree", detail="1 of 2 find it right, 1 cannot tell"
    )
    assert label_of(PROOF, ACCEPTED, unsure[1:2]) == LeftOut(
        reason="nobody could tell", detail="0 of 1 find it right, 1 cannot tell"
    )


def test_a_later_mark_of_the_same_person_replaces_the_earlier():
    marks = [mark(True, "A", "2026-02-01"), mark(True, "B"), mark(False, "A", "2026-01-01")]
    assert [one.human for one in latest_marks(marks)[PROOF.id]] == [True, True]
    assert [one.human for one in latest_marks([mark(True), mark(False)])[PROOF.id]] == [False]


def test_the_panel_does_not_count_in_a_slice_that_failed_its_audit():
    assert label_of(PROOF, ACCEPTED, discarded=True) == LeftOut(
        reason="slice not accepted", detail="S/rephrase/m"
    )
    assert label_of(KNOWN, ACCEPTED, discarded=True) == Won(label=False, rule="known: final answer")


def test_orders_that_make_no_sense_are_refused():
    for order in ((), ("panel", "panel"), ("human",)):
        with pytest.raises(ConfigError, match="name each of audit, known, panel once at most"):
            LabelRules(test=order)


def test_two_labels_of_one_proof_have_to_be_the_same():
    label = Label(proof_id="p", problem_id="q", slice="s", value=True, rule="r", votes=(True,), judges=("j",))
    assert panel_labels([label, label]) == {"p": Panel(value=True, rule="r", votes=(True,))}
    with pytest.raises(DataError, match="the proof p has two labels that differ"):
        panel_labels([label, replace(label, value=None)])


def rows_of(proofs, split="train", labels=None, marks=(), rules=ANY, problems=(PROBLEM,), doubted=()):
    placed = split_problems(
        [replace(one, split=split) for one in problems], SplitRules(hold_out_audited=False)
    )
    return list(
        triples(
            proofs,
            problems={one.id: one for one in problems},
            splits=placed,
            labels=labels or {},
            marks=latest_marks(marks),
            rules=rules,
            doubted=doubted,
        )
    )


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (replace(PROOF, known=True, known_by="x"), [True, True]),
        (replace(PROOF, known=False, known_by="x"), ["known labels differ"] * 2),
        (replace(PROOF, known=False, known_by="x", text=" It  is\nso."), ["known labels differ"] * 2),
        (replace(PROOF, known=False, known_by="x", text="It is not."), [True, False]),
        (replace(PROOF, known=False, known_by="x", problem_id="another"), [True, "no problem"]),
        (replace(PROOF, known=None), [True, "no label"]),
    ],
)
def test_a_label_that_another_row_denies_is_not_known(other, found):
    first = replace(PROOF, known=True, known_by="people")
    other = replace(other, method="another")
    rows = rows_of([first, other], doubted=contradicted([first, other], {PROBLEM.id: PROBLEM}))
    assert [row.label if isinstance(row, Qpc) else row.reason for row in rows] == found
    panel = {one.id: ACCEPTED for one in (first, other)}
    judged = rows_of(
        [first, other], labels=panel, doubted=contradicted([first, other], {PROBLEM.id: PROBLEM})
    )
    assert next(one.label for one in judged if isinstance(one, Qpc)) is True


def test_a_triple_says_all_that_a_verifier_and_a_reader_need():
    (row,) = rows_of([PROOF], labels={PROOF.id: ACCEPTED})
    assert row == Qpc(
        problem_id=PROBLEM.id,
        proof_id=PROOF.id,
        problem="Show it.",
        proof="It is so.",
        label=True,
        rule="panel: unanimous 3 of 3",
        slice="S/rephrase/m",
        split="train",
        consistent=True,
        votes=(True, True, True),
        licence="MIT",
    )


def test_training_keeps_consistent_labels_only_even_where_the_truth_is_known():
    (row,) = rows_of([KNOWN], labels={KNOWN.id: SPLIT_VOTE})
    assert (row.reason, row.detail) == ("judges disagree", "2 of 3 accept it; known: final answer")
    (row,) = rows_of([PROOF], labels={PROOF.id: SPLIT_VOTE}, marks=[mark(True)])
    assert row.reason == "judges disagree"


def test_the_test_set_keeps_what_judges_disagree_on_if_people_or_the_source_know():
    (by_source,) = rows_of([KNOWN], "test", {KNOWN.id: SPLIT_VOTE})
    assert (by_source.label, by_source.rule, by_source.consistent) == (False, "known: final answer", False)
    (by_people,) = rows_of([PROOF], "test", {PROOF.id: SPLIT_VOTE}, [mark(True)])
    assert (by_people.label, by_people.rule, by_people.consistent) == (True, "audit: 1 of 1", False)
    (by_nobody,) = rows_of([PROOF], "test", {PROOF.id: SPLIT_VOTE})
    assert isinstance(by_nobody, Aside)
    assert (by_nobody.stage, by_nobody.row, by_nobody.reason) == ("export", PROOF.id, "judges disagree")


def test_a_majority_trains_though_it_is_not_called_consistent():
    four_of_five = Panel(value=True, rule="majority 3 of 5", votes=(True, True, False, True, True))
    (row,) = rows_of([PROOF], labels={PROOF.id: four_of_five})
    assert (row.label, row.consistent) == (True, False)


def test_a_test_set_can_be_what_people_read_and_nothing_else():
    rules = LabelRules(test=("audit",))
    other = replace(PROOF, text="Clearly.")
    labels = {PROOF.id: ACCEPTED, other.id: ACCEPTED}
    kept, left = rows_of([PROOF, other], "test", labels, [mark(False)], rules)
    assert (kept.label, kept.rule, left.reason) == (False, "audit: 1 of 1", "label of the panel only")


def test_what_is_known_needs_no_judge():
    (row,) = rows_of([replace(KNOWN, method="naive_negative", model="")])
    assert (row.label, row.rule, row.votes, row.consistent) == (False, "known: final answer", (), True)


def test_a_proof_comes_once_and_never_without_its_problem():
    stray = replace(PROOF, problem_id="elsewhere")
    first, again, lost = rows_of([KNOWN, KNOWN, stray])
    assert isinstance(first, Qpc)
    assert (again.reason, lost.reason) == ("twice", "no problem")


def test_a_problem_in_both_splits_is_noticed_by_its_id_and_by_its_text():
    (row,) = rows_of([KNOWN])
    assert list(kept_apart([row, row])) == [row, row]
    with pytest.raises(DataError, match="is in both train and test"):
        list(kept_apart([row, replace(row, split="test")]))
    copy = replace(row, split="test", problem_id="another", problem="SHOW\nit.")
    with pytest.raises(DataError, match="the problem another is in both train and test"):
        list(kept_apart([row, copy]))
