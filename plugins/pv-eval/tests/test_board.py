"""The board: who is in which row and column, paired tests within a set, and files that votes alone decide."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from eval_cases import run
from evaluate_cases import drawn, made

from pv_eval import Intervals, Pair, RunInfo, Vote, check, compare, evaluate, write_run
from pv_eval.board.measure import holm
from pv_eval.board.page import blocks
from pv_eval.board.writing import make_board, write_board
from pv_eval.counts import count_votes
from pv_eval.provenance import set_fingerprint
from pv_judge.pages.blocks import Heading, Table
from pv_rl.errors import ConfigError, DataError

QUICK = Intervals(flips=100)
EVIL = "<script>alert(1)</script>\x1b[31m\u202e`|=2+2"


def info(verifier: str, on: str = "opc", **more) -> RunInfo:
    return RunInfo(verifier=verifier, set_name=on, **more)


def on_a_set(folder: Path, one: RunInfo, skill: float = 0.8, seed: int = 0, questions: int = 8, n: int = 4):
    """Every seed and skill has votes of its own on the same pairs."""
    pairs, votes = drawn(questions, 2, n, seed=seed, skills=(skill, skill + 0.1))
    write_run(folder, pairs, votes, one)
    return folder


def test_rows_are_verifiers_columns_are_sets_and_cells_are_the_evaluations(tmp_path):
    on_a_set(tmp_path / "a", info("good"), 0.9, 1)
    on_a_set(tmp_path / "b", info("bad"), 0.5, 2)
    on_a_set(tmp_path / "c", info("good", "other"), 0.9, 3, questions=5)
    board = make_board([tmp_path], QUICK)
    assert board.verifiers[0] == "good"
    assert [(column.on.name, len(column.cells)) for column in board.columns] == [("opc", 2), ("other", 1)]
    cell = board.columns[0].cell("bad")
    assert cell is not None
    assert cell.versus is not None
    pairs, votes = drawn(8, 2, 4, seed=2, skills=(0.5, 0.6))
    bad = check(pairs, votes)
    expected = evaluate(bad, QUICK).metrics
    for name, number in cell.numbers.items():
        assert number.value == pytest.approx(expected[name].value)
        assert number.low == pytest.approx(expected[name].low, nan_ok=True)
    good = count_votes(check(*drawn(8, 2, 4, seed=1, skills=(0.9, 1.0))))
    against = compare(good, count_votes(bad), QUICK)
    assert cell.versus.p == against.sign_flip_p["balanced_accuracy"]
    assert cell.versus.difference == against.differences["balanced_accuracy"]
    assert board.means.keys() == {"good"}
    values = [column.cell("good").numbers["balanced_accuracy"].value for column in board.columns]  # pyright: ignore[reportOptionalMemberAccess]
    assert board.means["good"].value == pytest.approx(sum(values) / 2)
    assert board.means["good"].low < board.means["good"].value < board.means["good"].high


def test_holm_as_in_the_docstring():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    found = holm([math.nan, 0.02, 0.5])
    assert math.isnan(found[0])
    assert found[1:] == [0.04, 0.5]
    assert holm([]) == []


def test_a_verifier_with_two_temperatures_is_two_and_with_two_sizes_one(tmp_path):
    on_a_set(tmp_path / "a", info("v", temperature=0.6), n=4)
    on_a_set(tmp_path / "b", info("v", temperature=1.0), n=4, seed=1)
    on_a_set(tmp_path / "c", info("v", "other", temperature=0.6), n=2, questions=5)
    board = make_board([tmp_path], QUICK)
    assert set(board.verifiers) == {"v (temperature 0.6)", "v (temperature 1)"}
    assert board.columns[1].cell("v (temperature 0.6)") is not None
    line = next(row for row in main_rows(board, tmp_path) if row.startswith("| v (temperature 0.6)"))
    assert "| 2 to 4 |" in line


def main_rows(board, tmp_path: Path) -> list[str]:
    write_board(board, tmp_path / "files")
    return (tmp_path / "files" / "README.md").read_text().splitlines()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"prompt": "short@1"}, "prompt short@1"),
        ({"verifier": {"revision": "abc"}}, "revision abc"),
        ({"sampling": {"top_p": 1.0}}, "top_p 1.0"),
        ({}, "seed 2"),
    ],
)
def test_runs_of_a_name_are_told_apart_by_what_differs(tmp_path, settings, name):
    on_a_set(tmp_path / "a", info("v", seed=1))
    on_a_set(tmp_path / "b", info("v", seed=2, settings=settings), seed=1)
    assert f"v ({name})" in make_board([tmp_path], QUICK).verifiers


def test_two_versions_of_a_set_are_two_columns(tmp_path):
    pairs, votes = drawn(8, 2, 4)
    write_run(tmp_path / "a", pairs, votes, info("v"))
    turned = [replace(pairs[0], label=not pairs[0].label), *pairs[1:]]
    write_run(tmp_path / "b", turned, votes, info("w"))
    write_run(tmp_path / "c", list(reversed(pairs)), votes, info("x"))  # the order is not another version
    board = make_board([tmp_path], QUICK)
    ends = [set_fingerprint(pairs), set_fingerprint(turned)]
    assert {column.on.name: len(column.cells) for column in board.columns} == {
        f"opc ({ends[0]})": 2,
        f"opc ({ends[1]})": 1,
    }
    assert len({set_fingerprint([replace(pairs[0], **change), *pairs[1:]]) for change in CHANGES}) == len(
        CHANGES
    )


CHANGES = ({}, {"label": None}, {"question_id": "z"}, {"pair_id": "z"}, {"weight": 2.0}, {"grade": 0.5})
CHANGES = (*CHANGES, {"first_error": 1})


def test_names_that_are_cut_to_the_same_are_told_apart(tmp_path):
    for number in range(2):
        on_a_set(tmp_path / f"a{number}", info("v", "s" * 200 + str(number)))
        on_a_set(tmp_path / f"b{number}", info("c" * 200 + f"/step-{number}"))
    board = make_board([tmp_path], QUICK)
    assert len({column.on.name for column in board.columns}) == 3
    assert [name[-7:] for name in sorted(board.verifiers)[:2]] == ["/step-0", "/step-1"]


def test_the_main_table_of_many_sets_is_in_parts_that_have_each_set_once(tmp_path):
    for number in range(16):
        on_a_set(tmp_path / f"a{number}", info("v", f"set{number}"))
    kinds = [*blocks(make_board([tmp_path], QUICK))]
    shown = kinds[: next(place for place, one in enumerate(kinds) if isinstance(one, Heading) and place)]
    parts = [[column.title for column in one.columns] for one in shown if isinstance(one, Table)]
    assert {part[0] for part in parts} == {"verifier"}
    assert [len(part) for part in parts] == [10, 8, 3, 5]
    assert [title for part in parts for title in part[1:]] == [
        *("mean", "missing"),
        *(f"set{number}" for number in range(16)),
        *("n", "tokens", "USD", "last run"),
    ]
    assert all(len(row) == len(one.columns) for one in shown if isinstance(one, Table) for row in one.rows)


def test_a_verifier_can_be_named_as_the_reference(tmp_path):
    on_a_set(tmp_path / "a", info("good"), 0.9, 1)
    on_a_set(tmp_path / "b", info("base"), 0.6, 2)
    on_a_set(tmp_path / "c", info("good", "other"), 0.9, 3, questions=5)
    board = make_board([tmp_path], QUICK, against="base")
    opc, other = board.columns
    assert opc.reference == "base"
    assert opc.cell("base").versus is None  # pyright: ignore[reportOptionalMemberAccess]
    gain = opc.cell("good").versus  # pyright: ignore[reportOptionalMemberAccess]
    assert gain is not None
    assert gain.difference.value > 0
    assert (other.reference, other.cells[0].versus) == ("", None)
    with pytest.raises(ConfigError, match="0 verifiers have this name; expected one of 'good', 'base'"):
        make_board([tmp_path], QUICK, against="nobody")


def test_the_same_votes_give_the_same_bytes_wherever_they_are(tmp_path):
    for number, verifier in enumerate(("v", "w", "x")):
        on_a_set(
            tmp_path / "one" / "runs" / f"r{number}",
            info(verifier, settings={"date": "2026-11-30"}),
            seed=number,
        )
    (tmp_path / "one" / "runs" / "broken").mkdir()
    (tmp_path / "one" / "runs" / "broken" / "votes.parquet").write_bytes(b"no")
    shutil.copytree(tmp_path / "one", tmp_path / "elsewhere" / "two")
    contents = []
    for place in (tmp_path / "one" / "runs", tmp_path / "elsewhere" / "two" / "runs"):
        files = write_board(make_board([place], QUICK), place.parent / "board")
        assert [file.name for file in files] == ["index.html", "README.md", "board.json", "board.csv"]
        contents.append([file.read_bytes() for file in files])
        assert str(tmp_path).encode() not in b"".join(contents[-1])
    assert contents[0] == contents[1]


def test_the_files_have_no_question_proof_trace_or_address(tmp_path):
    pairs, votes = drawn(4, 2, 2)
    pairs = [
        replace(pair, question=f"SECRET {pair.question_id}", proof=f"SECRET {pair.pair_id}") for pair in pairs
    ]
    votes = [replace(vote, trace="SECRET ### True") for vote in votes]
    settings = {"verifier": {"url": "http://SECRET:8000"}, "set": {"spec": "table:/SECRET"}}
    write_run(tmp_path / "a", pairs, votes, info("v", notes=("SECRET",), settings=settings))
    for file in write_board(make_board([tmp_path / "a"], QUICK), tmp_path / "board"):
        assert "SECRET" not in file.read_text()


def test_hostile_names_stay_in_their_place(tmp_path):
    settings = {"date": EVIL, "commit": EVIL, "prompt": "=" + EVIL, "versions": [EVIL]}
    on_a_set(tmp_path / "a", info("=1+1" + EVIL, EVIL, settings=settings))
    on_a_set(tmp_path / "b", info("@x", EVIL, settings=settings), seed=1)
    board = make_board([tmp_path], QUICK)
    files = {file.name: file.read_text() for file in write_board(board, tmp_path / "board")}
    assert not re.search(r"<script>(?!\s*\(\(\) =>)", files["index.html"])
    assert files["index.html"].count("<script>") == 1
    assert "<script>" not in files["README.md"]
    assert not set("".join(files.values())) & {"\x1b", "\u202e"}
    lines = list(csv.DictReader(files["board.csv"].splitlines()))
    assert {line["verifier"][:3] for line in lines} == {"'=1", "'@x"}
    assert {line["prompt"][:2] for line in lines} == {"'="}
    assert {(line["date"], line["pv_eval"]) for line in lines} == {("unknown", "unknown")}


def test_the_page_has_one_script_that_its_policy_names_and_the_csv_and_json_agree(tmp_path):
    on_a_set(tmp_path / "a", info("v", settings={"date": "2026-11-30", "versions": {"pv-eval": "9"}}))
    on_a_set(tmp_path / "b", info("w"), seed=1)
    files = {
        file.name: file.read_text() for file in write_board(make_board([tmp_path], QUICK), tmp_path / "o")
    }
    (script,) = re.findall(r"<script>(.*?)</script>", files["index.html"], re.DOTALL)
    named = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{named}'\"" in files["index.html"]
    given = json.loads(files["board.json"], parse_constant=pytest.fail)
    cells = {cell["verifier"]: cell for cell in given["sets"][0]["cells"]}
    for line in csv.DictReader(files["board.csv"].splitlines()):
        cell = cells[line["verifier"]]
        assert float(line["balanced_accuracy"]) == cell["numbers"]["balanced_accuracy"]["value"]
        assert line["usd"] == ""
        assert (line["date"], line["pv_eval"]) == (cell["date"], cell["pv_eval"])
        assert (line["p"] == "") == (line["verifier"] == given["sets"][0]["reference"])
    assert (cells["v"]["date"], cells["v"]["pv_eval"]) == ("2026-11-30", "9")


def test_broken_and_refused_runs_are_listed_with_the_reason(tmp_path):
    runs = tmp_path / "runs"
    on_a_set(runs / "good", info("v"))
    on_a_set(runs / "later", info("w"))
    text = (runs / "later" / "run.json").read_text()
    (runs / "later" / "run.json").write_text(text.replace('"format": 2', '"format": 99'))
    pairs, votes = made(("a", True, "q", "T"), ("a", True, "q", "T"))
    write_run(runs / "twice", pairs, votes[:1], info("x"))
    shutil.copytree(runs / "good", runs / "torn")
    (runs / "torn" / "run.json").unlink()
    result = run("board", runs, tmp_path / "\x1b]0;missing", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    for reason in (
        "format=99",
        "id of more than one pair",
        "torn has no run.json",
        "]0;missing",
    ):
        assert reason in result.stderr
        assert reason in (tmp_path / "out" / "index.html").read_text().replace("&#39;", "'")
    assert "\x1b" not in result.output
    assert len(json.loads((tmp_path / "out" / "board.json").read_text())["refused"]) == 4
    result = run("board", runs / "later", "--out", tmp_path / "none")
    assert result.exit_code == 1
    assert "no run is left for the board: " in result.stderr
    assert "format=99" in result.stderr
    assert not (tmp_path / "none").exists()


def test_odd_runs_have_a_cell(tmp_path):
    silent, _ = drawn(8, 2, 4)
    write_run(tmp_path / "a", *made(("a", True, "q", "NN"), ("b", False, "r", "NN")), info("silent"))
    write_run(tmp_path / "b", *made(("a", True, "q", "TTTT"), ("b", False, "r", "F")), info("unequal"))
    write_run(
        tmp_path / "c", *made(("a", True, "q", "TF"), ("b", True, "r", "TT")), info("one class", "rights")
    )
    pairs, votes = made(("a", True, "q", "TT"), ("b", False, "r", "FF"))
    write_run(tmp_path / "d", pairs, [vote for vote in votes if vote.pair_id == "a"], info("first half"))
    write_run(tmp_path / "e", pairs, [vote for vote in votes if vote.pair_id == "b"], info("second half"))
    write_run(tmp_path / "f", silent, [], info("no votes"))
    board = make_board([tmp_path], QUICK)
    opc, rights = board.columns
    assert [cell.entry.verifier for cell in opc.cells][:2] == ["unequal", "silent"]
    assert opc.cells[1].numbers["missing"].value == 1
    assert rights.decides == "accuracy"
    assert len(board.refused) == 1
    files = {file.name: file.read_text() for file in write_board(board, tmp_path / "o")}
    assert "voted on 1 of the 2 pairs only" in files["README.md"]
    halves = make_board([tmp_path / "d", tmp_path / "e"], QUICK).columns[0]
    assert halves.cells[1].versus is not None
    assert "no pair in common" in halves.cells[1].versus.reason
    assert math.isnan(halves.cells[1].versus.holm)


def test_a_run_of_the_first_version_of_the_format_is_on_the_board(tmp_path):
    on_a_set(tmp_path / "old", info("v"))
    for name, word in (("pairs.parquet", "pair"), ("votes.parquet", "vote")):
        path = tmp_path / "old" / name
        table = pq.read_table(path).drop_columns(["grade", "first_error"])
        pq.write_table(table.replace_schema_metadata({"pv_data.evaluate": f"{word} 1"}), path)
    path = tmp_path / "old" / "run.json"
    path.write_text(json.dumps({"format": 1, "verifier": "v", "set_name": "opc"}))
    (cell,) = make_board([tmp_path], QUICK).columns[0].cells
    assert (cell.entry.date, cell.entry.version, cell.entry.commit) == ("unknown", "unknown", "unknown")


def test_grades_and_first_wrong_steps_are_columns_beside_the_verdicts(tmp_path):
    given = [("a", 7, 6), ("a", 0, 0), ("b", 3, 5)]  # the example of `graded`: MAE 1 point, QWK 0.89
    pairs = [
        Pair(pair_id=f"p{n}", question_id=q, label=None, grade=x / 7, first_error=(0, 3, 2)[n])
        for n, (q, x, _) in enumerate(given)
    ]
    votes = [
        Vote(pair_id=f"p{n}", question_id=q, sample=0, verdict=y == 7, grade=y / 7, first_error=(0, 3, 1)[n])
        for n, (q, _, y) in enumerate(given)
    ]
    write_run(tmp_path / "graded", pairs, votes, info("v", verdict_format="grade", grades=tuple(range(8))))
    files = {one.name: one.read_text() for one in write_board(make_board([tmp_path], QUICK), tmp_path / "o")}
    row = next(csv.DictReader(files["board.csv"].splitlines()))
    numbers = [float(row[name]) for name in ("MAE of points", "QWK", "F1 of first errors")]
    assert numbers == pytest.approx([1, 0.891, 2 / 3], abs=1e-3)
    assert "0.891" in files["README.md"]
    assert row["accuracy"] == "0.6666666666666666"


def test_a_run_that_is_given_twice_is_one(tmp_path):
    folder = on_a_set(tmp_path / "a", info("v"))
    assert len(make_board([folder, tmp_path, folder], QUICK).columns[0].cells) == 1
    with pytest.raises(DataError, match="no folder was given"):
        make_board([], QUICK)
