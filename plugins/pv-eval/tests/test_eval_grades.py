"""`pv-eval grades`: a file of a human's and a verifier's grades, as people have them, to numbers in one command."""

from __future__ import annotations

import csv
import json
import re
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from eval_cases import run
from places import ROOT

from pv_eval.grade_file import COLUMNS, read_grades
from pv_rl.errors import ConfigError, DataError

ROWS = [
    {"problem_id": "a", "human_grade": 7, "model_grades": [7, 5]},
    {"problem_id": "a", "human_grade": 0, "model_grades": [0, None]},
    {"problem_id": "b", "human_grade": 3, "model_grades": [5, 5]},
]


def lines(path: Path, rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_one_command_gives_mae_kappa_and_best_of_k(tmp_path):
    path, out = lines(tmp_path / "mine.jsonl", ROWS), tmp_path / "o.json"
    result = run("grades", path, "--json", out)
    assert result.exit_code == 0, result.output
    for word in ("MAE (points)", "QWK", "Spearman", "Grade of the best of k", "Full points are 7"):
        assert word in result.output
    found = json.loads(out.read_text())["verifiers"]["mine"]
    # of the pairs' means 6, 0 and 5
    assert found["of_means"]["mae_points"]["value"] == pytest.approx(1)
    assert found["of_means"]["qwk"]["value"] == pytest.approx(1 - (5 / 3) / (119 / 3 - 220 / 9))
    assert found["best_of"]["curves"]["uniform"][1]["value"] == 7
    assert found["of_votes"]["missing"]["value"] == pytest.approx(1 / 6)
    assert found["grades"] == list(range(8))


def test_a_second_file_is_compared_with_the_first(tmp_path):
    first, out = lines(tmp_path / "mine.jsonl", ROWS), tmp_path / "o.json"
    better = lines(tmp_path / "better.jsonl", [row | {"model_grades": [row["human_grade"]]} for row in ROWS])
    result = run("grades", first, better, "--json", out)
    assert result.exit_code == 0, result.output
    assert "Grades of better against mine" in result.output
    assert re.search(r"MAE, points +-1\.00", result.output)
    (versus,) = json.loads(out.read_text())["versus"]
    assert (versus["first"], versus["second"]) == ("mine", "better")
    assert versus["comparison"]["differences"]["mae_points"]["value"] == pytest.approx(-1)


def test_a_file_without_a_question_column_says_what_it_lacks(tmp_path):
    rows = [{"human_grade": n % 8, "model_grade": 3 * n % 8} for n in range(9)]
    result = run("grades", lines(tmp_path / "mine.jsonl", rows))
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "Name the column by --column question=COLUMN." in said
    assert "tau-b (within a question): needs a question with several proofs" in said
    assert "division" not in said
    assert "mean over 0 questions" not in said


def test_grades_of_one_question_need_no_warning(tmp_path):
    rows = [{"question_id": "q", "human_grade": n % 8, "model_grade": 3 * n % 8} for n in range(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run("grades", lines(tmp_path / "mine.jsonl", rows))
    assert result.exit_code == 0, result.output
    assert "one question only" in result.output


def test_every_kind_of_file_and_both_forms_of_several_votes_give_the_same(tmp_path):
    as_rows = [
        {"question": row["problem_id"], "id": f"p{n}", "expert_rating": row["human_grade"], "grade": grade}
        for n, row in enumerate(ROWS)
        for grade in row["model_grades"]
    ]
    with (tmp_path / "t.csv").open("w") as file:
        writer = csv.DictWriter(file, ["problem_id", "human_grade", "model_grades"])
        writer.writeheader()
        writer.writerows({**row, "model_grades": json.dumps(row["model_grades"])} for row in ROWS)
    decimals = pa.array([row["human_grade"] for row in ROWS]).cast(pa.decimal128(21, 2))
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table.set_column(1, "human_grade", decimals), tmp_path / "t.parquet")
    files = [lines(tmp_path / "rows.jsonl", as_rows), tmp_path / "t.csv", tmp_path / "t.parquet"]
    wanted = read_grades(lines(tmp_path / "t.jsonl", ROWS))
    for file in files:
        read = read_grades(file)
        assert [pair.grade for pair in read.pairs] == [1, 0, pytest.approx(3 / 7)]
        assert [vote.grade for vote in read.votes] == [vote.grade for vote in wanted.votes]
        assert [vote.sample for vote in read.votes] == [0, 1] * 3
        assert len({pair.question_id for pair in read.pairs}) == 2


@pytest.mark.parametrize(
    ("rows", "options", "human", "model", "grades", "note"),
    [
        ([{"human": 1, "pred": 0.5}, {"human": 0.5, "pred": 0}], {}, [1, 0.5], [0.5, 0], (0, 0.5, 1), "points are 1"),
        ([{"human": 7, "pred": 0.5}, {"human": 3, "pred": 1.0}], {}, [1, 3 / 7], [0.5, 1], range(8), "go up to 1"),
        ([{"human": 7, "pred": 1}, {"human": 3, "pred": 0}], {}, [1, 3 / 7], [1 / 7, 0], range(8), "all 0 or 1"),
        ([{"human": 7, "pred": 3.5}], {}, [1], [0.5], range(8), "7"),
        ([{"human": 7, "pred": 1}], {"model_points": 1}, [1], [1], range(8), "as given"),
        ([{"human": 5, "pred": 6}], {"points": 7}, [5 / 7], [6 / 7], range(8), "Full points are 7, as given"),
        ([{"human": 1, "pred": 6}], {"grades": [0, 1, 6, 7]}, [1 / 7], [6 / 7], (0, 1, 6, 7), "7, as given"),
        (
            [{"human_rating": 9, "max_rating": 21, "pred": 21}, {"human_rating": 7, "max_rating": 7, "pred": 0}],
            {"points": 7}, [3 / 7, 1], [1, 0], range(8), "maxima of 7, 21: points are scaled to 7",
        ),
        (
            [{"human_rating": 7, "max_rating": 7, "average_automatic_rating": 1.0}],
            {}, [1], [1], range(8), "average_automatic_rating is a share",
        ),
        ([{"human": "6.5", "pred": "7"}, {"human": 7, "pred": ""}], {}, [6.5 / 7, 1], [1, None],
         [n / 2 for n in range(15)], "no column names"),
        ([{"score": 7, "human": 3, "model": "gpt"}], {"points": 7}, [3 / 7], [1], range(8), "model 'score'"),
        ([{"grade": 7, "pred": 6}], {}, [1], [6 / 7], range(8), "human 'grade'"),
        ([{"mine": 7, "its": 6}], {"columns": {"human": "mine", "model": "its"}}, [1], [6 / 7], range(8), "'mine'"),
        ([{"human": 7, "pred": 6}, {"human": None, "pred": 1}], {}, [1, None], [6 / 7, 1 / 7], range(8), "7"),
        # the first row lacks a column; a name before a grade is no grade
        ([{"human": 7}, {"human": 3, "pred": 6}], {}, [1, 3 / 7], [None, 6 / 7], range(8), "model 'pred'"),
        (
            [{"human": 7, "model": None, "score": 1}, {"human": 3, "model": "gpt", "score": 6}],
            {}, [1, 3 / 7], [1 / 7, 6 / 7], range(8), "model 'score'",
        ),
        (
            [{"human": 7, "pred": 1, "max_points": 7}] * 2 + [{"human": 1, "pred": 3, "max_points": 3}],
            {}, [1, 1, 1 / 3], [1 / 7, 1 / 7, 1], range(8), "1 human grade is no allowed one;",
        ),
        ([{"human": 3, "pred": 6}], {"grades": [0, 6, 7]}, [3 / 7], [6 / 7], (0, 6, 7), "1 human grade is no"),
    ],
)  # fmt: skip
def test_columns_and_scales_are_found_and_named(tmp_path, rows, options, human, model, grades, note):
    read = read_grades(lines(tmp_path / "t.jsonl", rows), **options)
    assert [pair.grade for pair in read.pairs] == [
        None if one is None else pytest.approx(one) for one in human
    ]
    assert [vote.grade for vote in read.votes] == [
        None if one is None else pytest.approx(one) for one in model
    ]
    assert read.scale.grades == tuple(grades)
    assert note.casefold() in " ".join(read.notes).casefold()


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([{"human": 7, "pred": 3}, {"human": "seven", "pred": 3}], {}, "line 2 of t.jsonl: its human is 'seven'"),
        ([{"human": 8, "pred": 3}], {"points": 7}, "line 1 of t.jsonl: the human's grade is 8; expected 0 to 7"),
        ([{"human": 7, "pred": 3}, {"human": 7, "pred": -1}], {}, "line 2.*verifier's grade is -1; expected 0 to 7"),
        ([{"human": 7, "pred": 9}], {}, "grade is 9; expected 0 to 7, the largest human grade. If .* give --points N$"),
        ([{"human": 7, "pred": 9}], {"points": 7}, "grade is 9; expected 0 to 7. Correct it.*--model-points N$"),
        ([{"human": 7, "pred": 2}], {"model_points": 1}, "grade is 2; expected 0 to 1. Correct it.*--model-points N$"),
        ([{"human": 7, "pred": 9, "max": 7}], {"columns": {"max": "max"}}, "0 to 7. Correct it.*--model-points N$"),
        ([{"human": -1, "pred": 1}, {"human": 5, "pred": 1}], {}, "is -1; expected 0 to 5, the largest human grade"),
        ([{"human": 7, "pred": [1, True]}], {}, "its pred is True; expected a number"),
        ([{"human": 7, "pred": [[1]]}], {}, r"its pred is \[1\]"),
        ([{"human": 7, "pred": {"a": 1}}], {}, "line 1 of t.jsonl: its pred is {'a': 1}; expected a number"),
        ([{"human_grade": "x", "pred": 1}], {}, "line 1 of t.jsonl: its human_grade is 'x'; expected a number"),
        ([{"grade": "x", "pred": 1}], {}, "line 1 of t.jsonl: its grade is 'x'; expected a number"),
        ([{"human_grade": 7, "model": "gpt"}], {}, "no column has the verifier's grade.*model is 'gpt', which is no"),
        ([{"human": 7, "pred": 1}, {"human": 7, "pred": {"a": 1}}], {}, "line 2 of t.jsonl: its pred is {'a': 1}"),
        ([{"human": 7}], {}, "no column has the verifier's grade for certain; the file has human. .*--column model="),
        ([{"grade": 7, "score": 3}], {}, "no column has the human's grade for certain; the file has grade, score"),
        ([{"human": 0, "pred": 0}], {}, "no human grade is above 0, so full points are unknown; give --points"),
        ([{"human": 7, "pred": 1, "max_points": 0}], {}, "its max_points is 0; expected full points above 0"),
        ([{"human": 1.0, "pred": 1}, {"human": 0.3337, "pred": 1}], {}, "no common step; name the allowed ones"),
        ([{"id": "x", "human": n, "pred": 1} for n in (7, 5)], {}, "line 2.*'x' occurs before with another"),
        ([{"id": "x", "human": 7, "pred": 1, "sample": 0.5}], {}, "sample is 0.5; expected a whole number"),
        ([{"problem": q, "human": 7, "pred": 1} for q in ("x", "")], {}, "line 2.*question is empty"),
        ([], {}, "has no rows"),
        ([{"human": 7, "pred": 1}], {"points": 0}, "full points are 0"),
        ([{"human": 7, "pred": 1}], {"points": float("inf")}, "full points are inf"),
        ([{"human": 7, "pred": 1}], {"model_points": float("inf")}, "verifier's full points are inf"),
        ([{"human": 7, "pred": 1}], {"points": 1e308}, "no common step"),
        ([{"human": 1e-308, "pred": 0}], {}, "no common step"),
        ([{"human": 7, "pred": 1}], {"grades": [0, float("nan"), 7]}, "expected two or more finite numbers"),
        ([{"human": 7, "pred": 1}], {"grades": [7, 3, 0]}, r"grades are 7, 3, 0; expected .* ascending"),
        ([{"id": "x", "human": 7, "pred": 1, "sample": 1e300}], {}, "expected a whole number from 0 to 2\\^63"),
        ([{"human": 7, "pred": 1}], {"accept": 9}, "--accept 9: expected points above 0, up to 7"),
        ([{"human": 7, "pred": 1}], {"points": 6, "grades": [0, 7]}, "give one of the two"),
        ([{"human": 7, "pred": 1}], {"model_points": -1}, "verifier's full points are -1"),
        ([{"human": 7, "pred": 1}], {"columns": {"expert": "x"}}, "--column expert is unknown; expected human, model"),
        ([{"human": 7, "pred": 1}], {"columns": {"human": "x"}}, "no column 'x'; it has human, pred"),
    ],
)  # fmt: skip
def test_bad_input_names_line_value_and_what_is_allowed(tmp_path, rows, options, said):
    with pytest.raises((DataError, ConfigError), match=said):
        read_grades(lines(tmp_path / "t.jsonl", rows), **options)


def test_errors_of_the_command_are_one_line(tmp_path):
    path = lines(tmp_path / "t.jsonl", ROWS)
    for arguments, said in (
        ([tmp_path / "no.jsonl"], "does not exist"),
        ([path, "--grades", "a,b"], "--grades is 'a,b'"),
        ([path, "--column", "human"], "expected NAME=COLUMN"),
        (
            [path, "--column", "model=a", "--column", "model=b"],
            "--column model is given twice; name one column",
        ),
        ([tmp_path], "has no pairs.parquet"),
    ):
        result = run("grades", *arguments)
        assert result.exit_code == 1
        assert said in result.output
        assert result.output.startswith("error ")


def test_several_files_are_beside_each_other(tmp_path):
    first, second = lines(tmp_path / "a.jsonl", ROWS), lines(tmp_path / "b.jsonl", ROWS[:2])
    (tmp_path / "c").mkdir()
    third = lines(tmp_path / "c" / "a.jsonl", ROWS[1:])
    result = run("grades", first, second, third, "--json", tmp_path / "o.json", "--points", 7)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "o.json").read_text())["verifiers"].keys() == {"a", "b", "a (3)"}


def test_a_file_of_other_pairs_says_why_it_is_not_compared(tmp_path):
    first = lines(tmp_path / "a.jsonl", [row | {"pair": f"p{n}"} for n, row in enumerate(ROWS)])
    second = lines(tmp_path / "b.jsonl", [row | {"pair": f"q{n}"} for n, row in enumerate(ROWS)])
    result = run("grades", first, second, "--json", tmp_path / "o.json")
    reason = "b is not compared with a: the two verifiers have no pair in common"
    assert reason in " ".join(result.output.split())
    assert any(note.startswith(reason) for note in json.loads((tmp_path / "o.json").read_text())["notes"])


def test_rows_of_one_pair_are_its_votes_and_samples_without_a_pair_are_noted(tmp_path):
    rows = [{"pair": "p", "sample": n, "human": 7, "model": 5 + n} for n in range(3)]
    found = read_grades(lines(tmp_path / "a.jsonl", rows))
    assert ([pair.pair_id for pair in found.pairs], len(found.votes)) == (["p"], 3)
    unnamed = [{name: value for name, value in row.items() if name != "pair"} for row in rows]
    assert "--column pair=COLUMN" in " ".join(read_grades(lines(tmp_path / "b.jsonl", unnamed)).notes)
    assert "--column pair=COLUMN" not in " ".join(found.notes)


def test_the_guide_lists_the_names_of_columns():
    guide = (ROOT / "docs" / "guides" / "evaluation.md").read_text()
    for meaning, names in COLUMNS.items():
        assert f"{meaning}: {', '.join(f'`{name}`' for name in names)}" in " ".join(guide.split())
