"""The adapters against the real files, which have these numbers."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from sources_cases import DATA, FOLDERS, needs_data, problems, proofs, real, reasons

from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof

pytestmark = needs_data


def labels(source: str) -> dict[tuple[str, bool | None], int]:
    return dict(Counter((one.method, one.known) for one in proofs(real(source))))


def test_olympiadbench_has_all_problems_and_all_their_solutions():
    rows = real("olympiadbench")
    assert Counter(one.source for one in problems(rows)) == {"OlympiadBench": 298, "OlympiadBench-OE": 237}
    assert Counter(one.source for one in proofs(rows)) == {"OlympiadBench": 460, "OlympiadBench-OE": 297}
    assert all(one.known and one.method == GROUND_TRUTH for one in proofs(rows))
    assert sum(bool(one.answer) for one in problems(rows)) == 237
    assert Counter(one.subject for one in problems(rows))["Number Theory"] == 64 + 86
    assert reasons(rows) == {}


def test_open_proof_corpus_has_peoples_labels_and_each_reference_once():
    assert labels("opc") == {("proof", True): 54, ("proof", False): 88, (GROUND_TRUTH, True): 33}
    rows = real("opc")
    assert len(problems(rows)) == 33
    assert Counter(one.model for one in proofs(rows))["openai/o3"] == 32
    assert reasons(rows) == {}
    assert len(proofs(real("opc", references=False))) == 142


def test_proofbench_has_a_reference_for_each_problem_and_says_what_is_geometry():
    rows = real("proofbench")
    assert len(problems(rows)) == len(proofs(rows)) == 60
    assert Counter(one.subject for one in problems(rows))["Geometry"] == 14
    assert reasons(rows) == {}


def test_processbench_is_right_where_no_step_is_wrong():
    rows = real("processbench")
    assert len(problems(rows)) == 192 + 75 + 71 + 75
    raw = [json.loads(line) for file in (DATA / "processbench").iterdir() for line in file.open()]
    right = sum(row["label"] == -1 for row in raw)
    assert labels("processbench") == {("solution", True): right, ("solution", False): 425 - right} != {}
    assert right == 178
    # 216 have a right final answer: a wrong step before a right answer is still wrong
    assert sum(row["final_answer_correct"] and row["label"] != -1 for row in raw) == 38
    assert reasons(rows) == {}


def test_prmbench_is_wrong_where_a_step_was_spoiled_and_silent_where_one_is_only_too_many():
    rows = real("prmbench")
    assert labels("prmbench") == {
        ("clean", True): 221,
        ("corrupted", False): 310,
        ("corrupted", None): 37,
    }
    assert reasons(rows) == {"no label: error_steps": 11, "empty: modified_process": 1}
    assert len(problems(rows)) == 202
    every = proofs(real("prmbench", not_wrong=()))
    assert Counter(one.known for one in every if one.method == "corrupted") == {False: 310 + 36}
    # the 37th names a wrong step that it does not have


def test_gsm8k_has_four_solutions_a_question_and_no_annotations():
    rows = real("gsm8k_solutions")
    assert labels("gsm8k_solutions") == {
        ("solution", True): 211 + 365 + 304 + 516,
        ("solution", False): 712 + 558 + 619 + 407,
        (GROUND_TRUTH, True): 923,
    }
    assert {one.model for one in proofs(rows)} == {
        "",
        "6b_finetuning",
        "6b_verification",
        "175b_finetuning",
        "175b_verification",
    }
    first = proofs(rows)[0].text
    assert first.startswith("It takes 2/2=1 bolt of white fiber")
    assert problems(rows)[0].answer == "3"
    assert "<<2/2=1>>" in proofs(real("gsm8k_solutions", annotations="keep"))[0].text
    # four solutions have an annotation that the model did not close properly; it stays
    assert sum("<<" in one.text for one in proofs(rows)) == 4
    assert reasons(rows) == {}


def test_dsmathv2_is_right_at_all_points_or_from_a_part_of_them():
    assert labels("dsmathv2") == {("proof", True): 24 + 4 + 3, ("proof", False): 11, (GROUND_TRUTH, True): 29}
    rules = Counter(one.known_by for one in proofs(real("dsmathv2")) if one.known and one.model)
    assert rules == {"human: 7 of 7": 24, "human: 10 of 10": 4, "human: 21 of 21": 3}
    raw = [json.loads(line) for line in (DATA / "dsmathv2" / "dsmathv2_outputs.jsonl").open()]
    half = sum(row["human_rating"] * 2 >= row["max_rating"] for row in raw)
    rows = [one for one in proofs(real("dsmathv2", positive=0.5, negative=0.0)) if one.model]
    zero = sum(row["human_rating"] == 0 for row in raw)
    assert Counter(one.known for one in rows) == Counter(
        {key: value for key, value in {True: half, False: zero, None: 42 - half - zero}.items() if value}
    )


@pytest.mark.parametrize("source", FOLDERS)
def test_a_problem_comes_before_its_proofs_and_nothing_comes_twice(source: str):
    there, made = set[str](), set[str]()
    for row in real(source):
        if isinstance(row, Problem):
            assert row.id not in there
            assert row.licence
            there.add(row.id)
        elif isinstance(row, Proof):
            assert row.problem_id in there
            assert row.id not in made
            assert bool(row.known_by) == (row.known is not None)
            made.add(row.id)
        else:
            assert isinstance(row, Aside)
            assert row.reason


@pytest.mark.parametrize("source", FOLDERS)
def test_reading_twice_gives_the_same_rows(source: str):
    assert real(source) == real(source)
