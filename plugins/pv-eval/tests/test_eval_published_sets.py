"""Published sets: made files in the form of each, their truth, and rows that cannot be used."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from collections import Counter
from inspect import signature
from pathlib import Path
from typing import Any

import places
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from panel import JudgeServer, Script
from rich.console import Console
from small_run import Run, by_text
from typer.testing import CliRunner

from pv_data.export.prompt import VerifierPrompt
from pv_data.records import Proof
from pv_data.sources.opening import open_source
from pv_data.table import read_rows, write_part
from pv_eval.checks import check
from pv_eval.cli import app
from pv_eval.export import export_tasks
from pv_eval.request import Sampling
from pv_eval.sets.base import EvalSet
from pv_eval.sets.catalogue import SETS, open_set
from pv_eval.sets.overlap import trained_on
from pv_eval.sets.published import published, table_of_sets
from pv_eval.sets.sources import read_source
from pv_eval.sets.truth import Judges, PointRule, grade_of, rubric_of
from pv_eval.votes import Vote
from pv_judge.pages import terminal
from pv_rl.errors import ConfigError, DataError

SHARED = places.SHARED / "data"
SCHEME = [
    {"title": "Bound", "max_points": 3, "grading_scheme_desc": "Shows n > 2.", "points": 1, "desc": "LEAK"},
    {"title": "Case 1", "max_points": 4, "grading_scheme_desc": "Done.", "points": 0, "desc": "LEAK"},
]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def real(*parts: str) -> Path:
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path.name} is not beside this checkout")
    return path


def truths(found: EvalSet) -> list[tuple[bool | None, float | None, int | None]]:
    return [(pair.label, pair.grade, pair.first_error) for pair in found.pairs]


def opc_row(n: int, label: str, proof: str, **more: Any) -> dict[str, Any]:
    ask = f"Judge it.\n\n### Problem Statement:\n\nProve {n // 2}.\n\n### Model Solution:\n\n{proof}\n"
    return {
        "metadata": {"category": ["Algebra"], "competition": "c", "source": "c", "year": 2020},
        "problem_id": f"made_{n // 2}",
        "solutions": [
            {"author": "Human", "images": {"dummy": ""}, "issue": None, "solution": f"Right {n // 2}."}
        ],
        "grading_scheme": [{"description": "d", "part_id": 1, "points": 1, "title": "t"}],
        "model_id": f"provider/model-{n}",
        "llm_judgment": None,
        "prompt": [{"role": "user", "content": ask}],
        "reward_model": {"ground_truth": label, "style": "rule"},
        "extra_info": {"index": n, "split": "test"},
        **more,
    }


def test_the_open_proof_corpus_as_published_gives_every_row_and_its_reference(tmp_path):
    rows = [opc_row(n, "correct" if n % 3 else "incorrect", f"Proof\r\n{n}.") for n in range(6)]
    rows[1]["prompt"].insert(0, {"role": "system", "content": "### Model Solution: is what you judge."})
    rows[2]["prompt"][0]["content"] = rows[2]["prompt"][0]["content"].replace("\n", "\r\n")
    found = open_set(f"opc:{parquet(tmp_path / 'a.parquet', rows)}")
    assert found.counts == {"pairs": 6, "questions": 3, "right": 4, "wrong": 2}
    assert [pair.reference for pair in found.pairs] == [f"Right {n // 2}." for n in range(6)]
    assert "The file has 6 pairs, 3 questions, 4 right, 2 wrong; published are 434 pairs" in found.notes[-1]
    assert not any("was not tried" in note for note in found.notes)
    unclear = [opc_row(6, "correct", "So ### Model Solution: so."), opc_row(8, "correct", "P.", prompt=[])]
    found = open_set(f"opc:{lines(tmp_path / 'b.jsonl', [*rows, *unclear])}")
    assert found.counts["pairs"] == 6
    assert found.left_out["source: cut: prompt"] == 1


def proofbench_row(n: int, rating: object, **more: Any) -> dict[str, Any]:
    return {
        "problem_id": f"APMO-{n // 2}",
        "problem": f"Prove {n // 2}.",
        "generator": "o3",
        "model_solution": f"s{n}",
        "reference_solution": f"ref {n // 2}",
        "expert_rating": rating,
        "marking_scheme": f"1 point for {n // 2}",
        "metadata": {"contest": "APMO", "contest_year": "2025"},
        **more,
    }


def test_proofbench_has_grades_references_and_rubrics_and_keeps_pairs_between_right_and_wrong(tmp_path):
    path = parquet(
        tmp_path / "train.parquet", [proofbench_row(n, rating) for n, rating in enumerate([7, 5, 0, 6])]
    )
    found = open_set(f"proofbench:{path}")
    assert truths(found) == [
        (True, 1.0, None),
        (False, 5 / 7, None),
        (False, 0.0, None),
        (False, 6 / 7, None),
    ]
    assert (found.pairs[1].reference, found.pairs[1].rubric) == ("ref 0", "1 point for 0")
    assert found.rules == {"human points: right with all points": 4}
    assert any("built from its published schema; it was not tried" in note for note in found.notes)
    gap = open_set(f"proofbench:{path}", {"positive": 6, "negative": 1})
    assert [pair.label for pair in gap.pairs] == [True, None, False, True]
    assert gap.counts == {
        "pairs": 4,
        "questions": 2,
        "right": 2,
        "wrong": 1,
        "without a label": 1,
        "graded": 4,
    }
    # what needs labels leaves it out, and counts it
    votes = [
        Vote(pair_id=one.pair_id, question_id=one.question_id, sample=0, verdict=True) for one in gap.pairs
    ]
    checked = check(gap.pairs, votes)
    assert len(checked.pairs) == 3
    assert any("1 pair without a label" in str(problem) for problem in checked.problems)
    assert gap.labelled().left_out == {"no label": 1}
    written = export_tasks(gap, tmp_path / "out", VerifierPrompt.load(), Sampling(), ["inspect"])
    (data,) = (path for path in written if path.suffix == ".jsonl")
    assert len(data.read_text().splitlines()) == 3


def test_gradingbench_has_guidelines_as_rubric(tmp_path):
    columns = (
        "Grading ID,Problem ID,Problem,Solution,Grading guidelines,Response,Points,Reward,Problem Source"
    )
    with (tmp_path / "gradingbench.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns.split(","))
        writer.writerow(
            ["GB-1", "PB-1", "P, q", "S", "(Partial)\n1. x", "A proof\nof two lines", 7, "Correct", "x"]
        )
        writer.writerow(["GB-2", "PB-1", "P, q", "S", "(Partial)\n1. x", "B", 1, "Partial", "x"])
    found = open_set(f"gradingbench:{tmp_path / 'gradingbench.csv'}")
    assert [(pair.pair_id, pair.grade, pair.reference, pair.rubric) for pair in found.pairs] == [
        ("GB-1", 1.0, "S", "(Partial)\n1. x"),
        ("GB-2", 1 / 7, "S", "(Partial)\n1. x"),
    ]


def matharena_row(n: int, *points: object, **more: Any) -> dict[str, Any]:
    judged = {f"points_judge_{judge}": one for judge, one in enumerate(points, 1)}
    return {
        "problem_idx": str(n),
        "problem": f"Prove {n}.",
        "model_name": "gemini-2.5-pro",
        "idx_answer": 0,
        "answer": f"Proof {n}.",
        "max_points_judge_1": 7,
        "max_points_judge_2": 7.0,
        "grading_details_judge_1": SCHEME,
        "grading_details_judge_2": None,
        **judged,
        **more,
    }


def test_matharena_has_the_mean_of_its_judges_and_a_rubric_without_their_marks(tmp_path):
    rows = [
        matharena_row(1, 7, 7.0),
        matharena_row(2, 7, 6.0),
        matharena_row(3, 3, None),
        matharena_row(4, 3, float("nan"), answer="<think>\nhm\n</think>\nProof 4."),
        matharena_row(5, None, None),
        matharena_row(6, 8, None),
        matharena_row(1, 7, 7.0, idx_answer=1),
    ]
    found = open_set(f"matharena:{parquet(tmp_path / 'imo.parquet', rows)}")
    assert truths(found) == [
        (True, 1.0, None),
        (False, 13 / 14, None),
        (False, 3 / 7, None),
        (False, 3 / 7, None),
    ]
    assert found.pairs[3].proof == "Proof 4."
    assert found.pairs[0].rubric == "Bound (3 points): Shows n > 2.\nCase 1 (4 points): Done."
    assert found.left_out == {"no points": 1, "points out of range": 1, "proof is there already": 1}
    # a later file has the parts as JSON text, and one judge; points may be in the parts alone
    later = [matharena_row(n, grading_details_judge_1=json.dumps(SCHEME)) for n in range(2)]
    for row in later:
        del row["max_points_judge_1"], row["max_points_judge_2"], row["grading_details_judge_2"]
    found = open_set(f"matharena:{parquet(tmp_path / 'usamo.parquet', later)}")
    assert truths(found) == [(False, 1 / 7, None)] * 2


def test_fineproofs_takes_its_rubrics_from_another_file(tmp_path):
    rows = [
        {"problem": f"Prove {n}.", "proof": f"p{n}", "category": "Algebra", "gemini-3-pro-grade": 7 * n}
        for n in range(2)
    ]
    proofs = parquet(tmp_path / "sft.parquet", rows)
    schemes = lines(
        tmp_path / "rl.jsonl", [{"problem": "PROVE  1.", "rubrics": "7 for all"}, {"problem": "?"}]
    )
    found = open_set(f"fineproofs:{proofs}", {"rubrics": str(schemes)})
    assert [pair.rubric for pair in found.pairs] == ["", "7 for all"]
    assert found.rules == {"points by Gemini 3 Pro, a model: right with all points": 2}
    assert any("of 1 of 2 questions are from rl.jsonl" in note for note in found.notes)
    with pytest.raises(DataError, match="has no rubric and no reference for a question of the set"):
        open_set(f"fineproofs:{proofs}", {"rubrics": str(lines(tmp_path / "x.jsonl", [{"problem": "?"}]))})


def test_refgrader_counts_from_one_to_four(tmp_path):
    rows = [{"problem": "P.", "solution": f"s{n}", "score": n} for n in (4, 1, 0)]
    found = open_set(f"refgrader:{lines(tmp_path / 'a.jsonl', rows)}")
    assert truths(found) == [(True, 1.0, None), (False, 0.0, None)]
    assert found.left_out == {"points out of range": 1}
    assert any("built from guesses" in note for note in found.notes)


def sealed(value: object, canary: str = "canary GUID 1") -> str:
    key = hashlib.sha256(canary.encode()).digest()
    text = (value if isinstance(value, str) else json.dumps(value)).encode()
    return base64.b64encode(bytes(one ^ key[n % 32] for n, one in enumerate(text))).decode()


def hard2verify_row(
    n: int, error: object, labels: object, steps: object = ("Step one.", "Step two.")
) -> dict:
    return {
        "unique_id": f"h{n}",
        "canary": "canary GUID 1",
        "question": sealed(f"Prove {n}."),
        "model_response_by_step": sealed(list(steps) if isinstance(steps, tuple) else steps),
        "human_labels": sealed(labels),
        "human_labels_first_error_idx": sealed(error),
    }


def test_hard2verify_is_opened_and_its_first_error_is_counted_from_one(tmp_path):
    rows = [
        hard2verify_row(0, -1, [1, 1]),
        hard2verify_row(1, 0, [0, 0]),
        hard2verify_row(2, 1, [1, 0]),
        hard2verify_row(3, None, [1, 0]),
        hard2verify_row(4, 1, [0, 0]),
        hard2verify_row(5, 2, None),
        hard2verify_row(6, -1, [1, 1, 1]),
        hard2verify_row(7, -1, None, "no list"),
        hard2verify_row(8, 1.5, None),
        hard2verify_row(9, -1, [1, 2]),
        {**hard2verify_row(10, 0, [0, 1]), "canary": "another"},
        {**hard2verify_row(11, 1, [1, 0]), "canary": None, "question": "Plain.", "human_labels": [1, 0]},
    ]
    rows[11] |= {"model_response_by_step": ["a", "b"], "human_labels_first_error_idx": 1}
    found = open_set(f"hard2verify:{lines(tmp_path / 'a.jsonl', rows)}")
    assert [pair.pair_id for pair in found.pairs] == ["h0", "h1", "h2", "h3", "h11"]
    assert truths(found) == [(True, None, 0), (False, None, 1), *[(False, None, 2)] * 3]
    first = found.pairs[0]
    assert (first.question, first.steps, first.proof) == (
        "Prove 0.",
        ("Step one.", "Step two."),
        "Step one.\n\nStep two.",
    )
    assert found.left_out == {
        "first error and labels of steps differ": 1,
        "first error is beyond the steps": 1,
        "labels of steps do not fit the steps": 1,
        "steps are not a list of texts": 2,
        "first error is not a step": 1,
        "labels of steps cannot be read": 1,
    }


def test_a_run_stores_a_marked_proof_as_a_proof(tmp_path):
    row = {"id": "g-1", "generator": "m", "problem": "P?", "steps": ["One.", "Two."], "label": 1}
    corrupted = {
        **{"idx": "c_1", "original_question": "P?", "modified_question": "P?", "classification": "circular"},
        **{"original_process": ["A.", "B."], "modified_process": ["A.", "C.", "D."], "error_steps": [3, 2]},
    }
    made = [*open_source("prmbench", lines(tmp_path / "b.jsonl", [corrupted]))]
    assert [one.first_error for one in made if isinstance(one, Proof)] == [0, 2]
    _, marked = open_source("processbench", lines(tmp_path / "a.jsonl", [row]))
    assert (marked.first_error, marked.steps) == (2, ("One.", "Two."))
    write_part(tmp_path / "proofs" / "0.parquet", Proof, [marked])
    (stored,) = read_rows(tmp_path / "proofs", Proof)
    assert (type(stored), stored.id) == (Proof, marked.id)


def test_a_table_of_first_errors_counts_as_the_user_says(tmp_path):
    rows = [
        {"problem": "P.", "steps": ["a", f"b{n}"], "first_error": n, "id": f"r{n}"} for n in (-1, 0, 1, 2, 3)
    ]
    path = lines(tmp_path / "a.jsonl", rows)
    found = open_set(f"table:{path}")
    assert truths(found) == [(True, None, 0), (True, None, 0), (False, None, 1), (False, None, 2)]
    assert found.left_out == {"first error is beyond the steps": 1}
    found = open_set(f"table:{path}", {"first": 0})
    assert truths(found) == [(True, None, 0), (False, None, 1), (False, None, 2)]
    with pytest.raises(ConfigError, match="first is 2"):
        open_set(f"table:{path}", {"first": 2})
    plain = {"problem": "P.", "proof": "p", "id": "y", "steps": [], "points": None, "weight": None}
    plain |= {"first_error": 0, "label": None}
    mixed = [{**rows[0], "label": True}, {**rows[2], "label": True, "id": "x"}, plain]
    found = open_set(f"table:{lines(tmp_path / 'b.jsonl', mixed)}")
    assert (len(found.pairs), found.left_out) == (2, {"label and first error differ": 1})
    with pytest.raises(DataError, match="has no column typo for the rubric"):
        open_set(f"table:{path}", {"columns": {"rubric": "typo"}})
    with pytest.raises(ConfigError, match="columns is 'x'"):
        open_set(f"table:{path}", {"columns": "x"})


def test_points_may_be_anywhere_in_a_row(tmp_path):
    rows = [{"q": {"text": "P."}, "tries": [{"text": f"p{n}"}], "marks": {"sum": n}} for n in (0, 10)]
    columns = {"problem": "q.text", "proof": "tries[0].text", "points": "marks.sum"}
    found = open_set(f"graded:{lines(tmp_path / 'a.jsonl', rows)}", {"max": 10, "columns": columns})
    assert truths(found) == [(False, 0.0, None), (True, 1.0, None)]


@pytest.mark.parametrize("kind", ["graded", "table"])
@pytest.mark.parametrize(("pair", "question"), [("id", "problem_id"), ("proof_id", "question_id")])
def test_both_kinds_of_plain_files_find_the_ids_of_pairs_and_questions(kind, pair, question, tmp_path):
    rows = [{pair: f"x{n}", question: "q", "problem": "P.", "proof": f"p{n}", "points": n} for n in (0, 7)]
    found = open_set(f"{kind}:{lines(tmp_path / 'a.jsonl', rows)}")
    assert [(one.pair_id, one.question_id) for one in found.pairs] == [("x0", "q"), ("x7", "q")]


@pytest.mark.parametrize(
    ("rating", "reason"),
    [
        ("7/7", "points are not a number"),
        (True, "points are not a number"),
        ({"a": 1}, "points are not a number"),
        ([], "points are not a number"),
        ([{"points": "x"}], "points are not a number"),
        (7.001, "points out of range"),
        (-1, "points out of range"),
        (10**400, "points are not a number"),
        ("[" * 100_000, "points are not a number"),
        (None, "no points"),
        ("  ", "no points"),
    ],
)
def test_a_row_with_points_that_are_none_is_left_out_with_the_reason(tmp_path, rating, reason):
    path = lines(tmp_path / "a.jsonl", [proofbench_row(0, 7), proofbench_row(1, rating)])
    found = open_set(f"proofbench:{path}")
    assert (len(found.pairs), found.left_out) == (1, {reason: 1})


def test_rows_that_cannot_be_read_cost_only_themselves(tmp_path):
    path = lines(
        tmp_path / "a.jsonl", [proofbench_row(0, 7), proofbench_row(2, 0, model_solution="x" * 1_000_001)]
    )
    with path.open("a") as file:
        file.write('{"problem": NaN}\n{"problem": \n')
        file.write(json.dumps(proofbench_row(4, 7, problem=7)) + "\n")
        file.write(json.dumps(proofbench_row(6, 7, model_solution="  ")) + "\n")
    found = open_set(f"proofbench:{path}")
    assert len(found.pairs) == 1
    assert sum(found.left_out.values()) == 5
    assert {"a text has more than 1000000 characters", "blank proof"} < found.left_out.keys()


def test_a_rubric_never_shows_what_the_judge_gave():
    judged = [{"title": "A", "max_points": 2, "points": 1, "desc": "SECRET"}]
    assert rubric_of(judged) == "A (2 points)"
    assert rubric_of([{"title": "A", "points": 2, "description": "Do it."}]) == "A (2 points): Do it."
    assert rubric_of(Judges({"1": None, "2": judged})) == "A (2 points)"
    assert [rubric_of(value) for value in (None, 7, [], ["a"], "text")] == ["", "", "", "a", "text"]
    assert grade_of(Judges({"1": 7, "2": 0}), Judges({"1": 7, "2": 10}), PointRule()) == 0.5


def test_real_sets_have_first_errors_steps_and_grades():
    found = open_set(f"processbench:{real('processbench')}")
    row = json.loads(real("processbench", "gsm8k.jsonl").open().readline())
    pair = next(one for one in found.pairs if one.question == row["problem"].strip())
    assert (pair.first_error, len(pair.steps)) == (row["label"] + 1, len(row["steps"]))
    assert all((pair.first_error == 0) is pair.label for pair in found.pairs)
    found = open_set(f"prmbench:{real('prmbench')}")
    assert Counter(pair.first_error == 0 for pair in found.pairs) == {True: 221, False: 310}
    assert all(0 <= (pair.first_error or 0) <= len(pair.steps) for pair in found.pairs)
    scheme = real("imobench", "proofbench_v2.csv")
    found = open_set(
        f"dsmathv2:{real('dsmathv2')}", {"positive": 0.9, "negative": 0.1, "rubrics": str(scheme)}
    )
    assert found.counts["graded"] == found.counts["pairs"] == 42
    assert found.counts["without a label"] == sum(0.1 < (pair.grade or 0) < 0.9 for pair in found.pairs) > 0
    assert any(pair.rubric for pair in found.pairs)


def test_a_run_is_read_from_its_folder_its_export_or_a_file(tmp_path):
    style = (
        "generate: [{name: style_forum, method: style, of: [proof], model: judge, options: {style: forum}}]\n"
    )
    with JudgeServer(Script(reply=by_text)) as server:
        run = Run(tmp_path, server, problems=6, each=2, more=style)
        code, output = run.command()
        assert code == 0, output
    table, whole_run = run.folder / "export" / "qpc", {"split": "all"}
    whole = {
        f"{name}:{run.folder}": open_set(f"{name}:{run.folder}", whole_run).pairs
        for name in ("curated", "style")
    }
    assert len(whole[f"curated:{run.folder}"]) > len(whole[f"style:{run.folder}"]) > 0
    trained = trained_on(run.folder)
    assert len(trained.ids) > 0
    for place in (run.folder / "export", table, next(table.glob("*.parquet"))):
        for name in ("curated", "style"):
            assert open_set(f"{name}:{place}", whole_run).pairs == whole[f"{name}:{run.folder}"]
        assert trained_on(place).ids == trained.ids
    for part in table.glob("*.parquet"):
        part.unlink()
    with pytest.raises(DataError, match="The run is not finished"):
        open_set(f"curated:{run.folder}")


def invoke(*arguments: object):
    return CliRunner().invoke(app, ["sets", *map(str, arguments)])


def test_the_command_lists_every_set_and_tries_one(tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "standard_output", lambda: Console(highlight=False, width=100))
    listed = invoke()
    assert listed.exit_code == 0
    assert all(re.search(rf"^{name}:", listed.output, re.MULTILINE) for name in SETS)
    assert max(map(len, listed.output.splitlines())) <= 100
    cells = " ".join(cell for row in table_of_sets().rows for cell in row)
    assert set(re.split(r"[;\s]+", cells)) <= set(re.split(r"[;\s]+", listed.output))  # no word is cut
    path = parquet(tmp_path / "train.parquet", [proofbench_row(n, 7) for n in range(435)])
    tried = invoke("--try", f"proofbench:{path}")
    assert tried.exit_code == 1
    assert "The file has 218 questions; published are 145 questions" in tried.output.splitlines()[-1]
    for shown in ("435 graded", "licence: MIT", "1 point for 0", "label=True, grade=1.0", "### Grade:"):
        assert shown in tried.output
    fits = parquet(
        tmp_path / "b.parquet", [proofbench_row(n, 7) | {"problem_id": n // 3} for n in range(435)]
    )
    assert invoke("--try", f"proofbench:{fits}").exit_code == 0
    assert "### True" in invoke("--try", f"proofbench:{fits}", "--format", "verdict").output
    for wrong, words in (
        (f"opc:{path}", "has no pair"),
        ("opc", "needs a file"),
        ("nothing:x", "is unknown"),
    ):
        failed = invoke("--try", wrong)
        assert (failed.exit_code, words in failed.output) == (1, True), failed.output
    assert "go with --try" in invoke("--set-option", "positive=6").output


def test_the_catalogue_is_true():
    for name, one in published().items():
        read = SETS[name]
        if getattr(read, "func", None) is not read_source:
            unused = {"path"} if "grade" in one.truth or not one.form else {"path", "positive", "negative"}
            assert set(one.options.split(", ")) == signature(read).parameters.keys() - unused, name
        assert bool(one.page) == bool(one.paper or one.licence or one.expected), name
