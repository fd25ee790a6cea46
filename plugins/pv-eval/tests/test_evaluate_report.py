"""The report: what it says, and that nothing from outside gets out of its place."""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import places
import pytest
import typer
from evaluate_cases import drawn, made
from typer.testing import CliRunner

from pv_eval import Pair, RunInfo, Vote, check, compare, evaluate, read_vote, write_run
from pv_eval.best_of import best_of_set
from pv_eval.counts import count_votes
from pv_eval.intervals import Intervals
from pv_eval.report.cases import disagreements, worst_errors
from pv_eval.report.passage import Passage, excerpt, find_passage
from pv_eval.report.writing import write_report
from pv_eval.report_command import report
from pv_rl.errors import DataError

PAPER = places.SHARED / "paper"
EVIL = "<script>alert(1)</script> \x1b[31mred\x1b[0m \u202egnp.exe ```` | a*b_c $x$ </pre><img src=x onerror=y> \ud800 "
QUICK = Intervals(flips=100)


def evil_run(folder: Path, name: str, seed: int) -> Path:
    pairs, given = drawn(6, 3, 4, seed=seed)
    pairs = [
        replace(one, slice=f"s{n % 2} {EVIL}", question=EVIL + one.question_id, proof=EVIL + one.pair_id)
        for n, one in enumerate(pairs)
    ]
    spoken = [
        read_vote(
            pair_id=vote.pair_id,
            question_id=vote.question_id,
            sample=vote.sample,
            trace=f"{EVIL}\n`````\n{EVIL}\nStep 2 divides by zero.\n"
            + ("" if vote.verdict is None else f"### {vote.verdict}"),
        )
        for vote in given
    ]
    info = RunInfo(
        verifier=name, set_name="opc", temperature=0.6, seed=1, notes=(EVIL,), settings={"x": EVIL}
    )
    write_run(folder, pairs, spoken, info)
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    runs = [evil_run(folder / "a", f"base {EVIL}", 0), evil_run(folder / "b", "_trained", 1)]
    write_report(runs, folder / "out", QUICK)
    return folder / "out"


def test_hostile_text_of_models_and_data_stays_in_its_place(written):
    page, text = (written / "report.html").read_text(), (written / "report.md").read_text()
    assert not re.search(r"<(script|img src=x|i>)", page)
    assert "&lt;script&gt;alert(1)" in page
    assert "<mark>" in page
    assert not set(page + text) & {"\x1b", "\u202e", "\ud800"}
    assert "<script>" in text  # in a fence
    for name in re.findall(r"\]\((\S+\.png)\)", text):
        assert (written / name).read_bytes().startswith(b"\x89PNG")


def test_the_main_table_has_the_floors_and_ranking_a_table(written):
    floors: dict[str, list[str]] = {}
    for line in (written / "report.md").read_text().splitlines():
        name, *cells = line.strip("| ").split(" | ")
        if name.startswith(("(", "\\(")):
            floors.setdefault(name.strip("()\\"), []).extend(cells)
    pairs, _ = drawn(6, 3, 4)
    share = f"{100 * sum(one.label for one in pairs) / len(pairs):.1f}"
    # missing, Avg@n, balanced, right, wrong, accepted; precision and F1 of right proofs; precision of wrong ones
    assert floors["accepts everything"][2:9] == ["0.0", share, "50.0", "100.0", "0.0", "100.0", share]
    assert floors["rejects everything"][4:9] == ["50.0", "0.0", "100.0", "0.0", "-"]
    assert floors["coin"][3:9] == ["50.0", "50.0", "50.0", "50.0", "50.0", share]
    assert floors["majority class"] == floors["accepts everything"]
    found = json.loads((written / "report.json").read_text())["runs"][0]["evaluation"]["ranking"]["votes"]
    assert 0 < found["auroc"]["low"] < found["auroc"]["value"] < found["auroc"]["high"] < 1
    assert f"{found['auroc']['value']:.3f}" in (written / "report.md").read_text()
    assert set(found["selective"]) == {"0.5", "0.8", "1.0"}


def test_the_json_has_the_numbers_and_no_nan(written):
    given = json.loads((written / "report.json").read_text(), parse_constant=pytest.fail)
    assert [run["name"] for run in given["runs"]][1] == "_trained"
    pairs, votes = drawn(6, 3, 4, seed=1)
    expected = evaluate(check(pairs, votes), QUICK).metrics["accuracy"]
    found = given["runs"][1]["evaluation"]["metrics"]["accuracy"]
    assert (found["value"], found["low"]) == pytest.approx((expected.value, expected.low))
    assert given["versus"][0]["comparison"]["pairs"] == 18
    assert given["paper"]["avg8_percent"]["opc"][0]["percent"] == 83.1


def test_the_papers_numbers_are_said_to_be_the_papers(written):
    text = (written / "report.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ProofVerifier-8B |")]
    assert lines == ["| ProofVerifier-8B |  | 75.7 | the paper, transfer |"]
    assert "as printed in" in text
    assert "18 pairs of 6 questions, the paper's set has 292 of 65: not the same set" in text
    assert "measured here" in text


@pytest.mark.parametrize("place", [0, 1400, 1990, 5000, 8400, 9990])
def test_a_passage_near_an_end_is_shown_once(place):
    text = "".join(chr(0x4E00 + n) for n in range(10_000))
    pieces = excerpt(text, Passage(start=place, end=place + 10, why="x"))
    shown = "".join(piece for piece, kind in pieces if kind != "gap")
    assert len(set(shown)) == len(shown)
    assert "".join(piece for piece, kind in pieces if kind == "mark") == text[place : place + 10]


@pytest.mark.parametrize(
    ("trace", "passage", "why"),
    [
        ("Step 1 holds. Step 2 divides by 0.\n### False", "Step 2 divides by 0.", "last statement"),
        ("All is well.\n\nso S3 is wrong ### False<|im_end|>", "so S3 is wrong", "last statement"),
        ("It stops in the mid", "It stops in the mid", "last statement"),
        ("Fine. " + "the same words again and again, " * 60 + "\n### True", "the same words", "loop"),
    ],
)
def test_the_passage_is_the_anomaly_or_the_last_statement(trace, passage, why):
    found = find_passage(trace)
    assert found is not None
    assert passage in trace[found.start : found.end]
    assert why in found.why
    if why == "last statement":
        assert trace[found.start : found.end] == passage


def test_a_trace_without_words_has_no_passage_and_a_long_one_takes_linear_time():
    assert find_passage("") is None
    assert find_passage("  \n") is None
    start = time.process_time()
    find_passage("x. " * 1_000_000)
    assert time.process_time() - start < 5


def test_worst_errors_are_ordered_by_wrong_votes_and_show_one():
    pairs, given = made(
        ("a", False, "q", "FTF"), ("b", False, "q", "TTT"), ("c", False, "r", "FFF"), ("d", True, "r", "NFF")
    )
    counts = count_votes(check(pairs, given))
    found = worst_errors(counts, False, 5)
    assert [(case.pair.pair_id, case.accepted, case.vote.sample) for case in found if case.vote] == [
        ("b", 3, 0),
        ("a", 1, 1),
    ]
    (case,) = worst_errors(counts, True, 5)
    assert (case.rejected, case.missing, case.vote and case.vote.sample) == (2, 1, 1)
    assert worst_errors(counts, False, 0) == []


def test_disagreements_go_both_ways_and_show_what_differs():
    first = count_votes(check(*made(("a", True, "q", "FF"), ("b", True, "q", "TT"), ("c", True, "r", "TF"))))
    second = count_votes(check(*made(("a", True, "q", "TT"), ("b", True, "q", "TF"), ("c", True, "r", "FT"))))
    up, down = disagreements(first, second, 2)
    assert (up.first.pair.pair_id, up.gain) == ("a", 1.0)
    assert up.first.vote is not None
    assert up.second.vote is not None
    assert (up.first.vote.verdict, up.second.vote.verdict) == (False, True)
    assert (down.first.pair.pair_id, down.gain) == ("b", -0.5)
    assert down.second.vote is not None
    assert down.second.vote.verdict is False


def command(*arguments: object):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(report)
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_command_writes_beside_the_first_run_and_prints_a_table(tmp_path):
    run = evil_run(tmp_path / "a", f"base {EVIL}", 0)
    answer = command(run)
    assert answer.exit_code == 0, answer.output
    assert "\x1b" not in answer.output
    assert "Avg@n" in answer.output
    assert {path.name for path in (run / "report").iterdir()} == {
        *(
            "report.html",
            "report.md",
            "report.json",
            "traces.html",
            "best_of.png",
            "length.png",
            "reliability.png",
        )
    }


def test_the_command_says_in_a_line_what_is_wrong(tmp_path):
    pairs, given = made(("a", True, "q", "T"))
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "twice", [*pairs, *pairs], given, RunInfo(verifier="v"))
    for arguments, text in (
        ([tmp_path / "none"], "none; a run is a folder with pairs.parquet, votes.parquet, run.json"),
        ([tmp_path / "empty"], "has no votes.parquet, and no folder in it has one"),
        ([tmp_path / "twice"], "of more than one pair"),
        ([tmp_path / "twice", "--out", tmp_path / "no" / "where"], "there is no folder"),
    ):
        answer = command(*arguments)
        assert answer.exit_code == 1
        assert text in answer.output
        assert "Traceback" not in answer.output
    assert not (tmp_path / "twice" / "report").exists()


def test_one_class_one_question_and_one_sample_still_make_a_report(tmp_path):
    write_run(tmp_path / "a", *made(("a", True, "q", "N")), RunInfo(verifier="v"))
    write_run(tmp_path / "b", *made(("z", False, "r", "T")), RunInfo(verifier="v"))
    summary, files = write_report([tmp_path / "a", tmp_path / "b"], tmp_path / "out", QUICK)
    assert [group.name for group in summary.groups] == [
        "a set without a name (a)",
        "a set without a name (b)",
    ]
    text = (tmp_path / "out" / "report.md").read_text()
    assert (
        "another set than an earlier one of the same name: the two verifiers have no pair in common" in text
    )
    assert "1 pair, all right proofs" in text
    assert "balanced, accuracy; wrong proofs, accuracy; " in text  # as the tables name them
    assert "accuracy\\_" not in text
    assert all(path.is_file() for path in files)


def test_an_error_without_a_trace_has_no_empty_block(tmp_path):
    pairs, votes = made(("a", True, "q", "F"), ("b", False, "q", "F"))
    write_run(tmp_path / "a", pairs, [replace(vote, trace=None) for vote in votes], RunInfo(verifier="v"))
    write_report([tmp_path / "a"], tmp_path / "out", QUICK)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "v: 0 accept, 1 reject, 0 without a verdict. No trace was kept." in text
    assert "```text\n\n```" not in text


def test_nothing_heavy_is_imported_before_it_is_used():
    heavy = ("numpy", "scipy", "matplotlib", "pyarrow", "torch", "verl")
    code = (
        "import sys, pv_data, pv_eval, pv_eval.report_command;"
        f"print([name for name in {heavy} if name in sys.modules]);"
        "from pv_eval import best_of_k, evaluate, check;"
        "print([name for name in ('scipy', 'matplotlib', 'pyarrow', 'torch', 'verl') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def test_every_public_name_is_there_and_others_are_not():
    import pv_eval as package

    for name in package.__all__:
        assert not inspect.ismodule(getattr(package, name))
        assert importlib.util.find_spec(f"pv_eval.{name}") is None, "the module would hide it"
    with pytest.raises(AttributeError, match="has no attribute 'charm'"):
        _ = package.charm


def test_a_thousand_pairs_with_eight_votes_take_less_than_five_seconds():
    pairs, given = drawn(200, 5, 8)
    _, other = drawn(200, 5, 8, seed=9)
    start = time.process_time()
    first, second = (check(pairs, votes) for votes in (given, other))
    found = evaluate(first, Intervals(flips=1000))
    counts = count_votes(first)
    best_of_set(counts, Intervals(flips=1000))
    compare(counts, count_votes(second), Intervals(flips=1000))
    assert time.process_time() - start < 5
    assert not math.isnan(found.metrics["accuracy"].low)


def test_real_judge_traces_of_one_class_make_a_report(tmp_path):
    path = PAPER.parent / "data" / "mrgsm8k" / "judge_traces.jsonl"
    if not path.is_file():
        pytest.skip("the real traces are not beside this checkout")
    rows = [row for row in map(json.loads, path.open(encoding="utf-8")) if row["judge"] == "llama2_70b"]
    pairs = [
        Pair(pair_id=str(n), question_id=row["question"][:60], label=False, proof="\n".join(row["steps"]))
        for n, row in enumerate(rows)
    ]
    given = [
        Vote(
            pair_id=str(n),
            question_id=row["question"][:60],
            sample=0,
            verdict=False if row["judge_verdict"].lower() == "wrong" else None,
            trace=row["judge_response"],
            length=len(row["judge_response"]),
        )
        for n, row in enumerate(rows)
    ]
    write_run(tmp_path / "run", pairs, given, RunInfo(verifier="llama2_70b"))
    summary, _ = write_report([tmp_path / "run"], tmp_path / "out", QUICK)
    found = summary.entries[0].evaluation.metrics
    assert found["accuracy"].value == found["accuracy_wrong"].value == 1
    assert "exact" in found["accuracy"].note
    assert math.isnan(found["accuracy_right"].value)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "all wrong proofs: numbers that need both classes are none" in text
    assert "No vote is for the wrong class." in text
    write_report([tmp_path / "run"], tmp_path / "without", QUICK, cases=0)
    assert "wrong class" not in (tmp_path / "without" / "report.md").read_text()


def test_no_run_and_no_place_are_refused(tmp_path):
    with pytest.raises(DataError, match="folder of one run or more"):
        write_report([], tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is not a folder"):
        write_report([tmp_path], tmp_path / "file")
