"""`pv-eval run --format`: the format's prompt is asked, its answers are read, and the report measures them."""

from __future__ import annotations

import json
import re

import pytest
from eval_cases import run
from judge_server import JudgeServer, Script

from pv_data.export.prompt import VerifierPrompt
from pv_eval import Pair, read_run
from pv_eval.sets.base import EvalSet
from pv_eval.verifiers.recorded import read_traces
from pv_rl.errors import DataError
from pv_verdicts import build_format

PAIRS = tuple(
    Pair(
        pair_id=f"p{n}",
        question_id=f"q{n // 3}",
        label=None,
        question=f"Prove {n // 3}.",
        proof=f"First.\n\nSTEP{n}.",
        grade=n / 7 if n < 6 else None,
        first_error=n % 3 if n < 6 else None,
        reference="A KNOWN solution." if n % 2 else "",
        rubric="One POINT a case.",
    )
    for n in range(7)
)


def of(pairs):
    return EvalSet(
        name="made", pairs=tuple(pairs), rule_of=dict.fromkeys([p.pair_id for p in pairs], ""), left_out={}
    )


@pytest.fixture
def made(monkeypatch):
    def use(pairs=PAIRS):
        monkeypatch.setattr("pv_eval.running.open_set", lambda *_: of(pairs))

    use()
    return use


def asked(server) -> list[str]:
    return [chat["body"]["messages"][0]["content"] for chat in server.chats()]


def examiner(prompt: str, _: str) -> str:
    return f"I read it.\n### Grade: {min(7, int(re.findall(r'STEP([0-9])', prompt)[0]) + 1)}"


@pytest.mark.parametrize(
    ("rows", "points", "noted"),
    [
        ([{"points": 7}, {"points": 3}], 10, "The set's full points are 7; the verifier's are 10 ("),
        ([{"points": 7}, {"points": 3}], 7, ""),
        (
            [{"points": 20, "max_points": 21}, {"points": 3}],
            7,
            "The set's full points are 21; the verifier's are 7 (",
        ),
        ([{"points": [{"points": 2, "max_points": 3}]}], 7, ""),  # parts, whose maxima may differ
    ],
)
def test_full_points_that_are_not_those_of_the_set_are_noted(tmp_path, rows, points, noted):
    path, votes = tmp_path / "set.jsonl", tmp_path / "votes.jsonl"
    texts = [{"id": f"p{n}", "problem": f"Prove {n}.", "proof": "By induction."} for n in range(len(rows))]
    path.write_text("".join(json.dumps(text | row) + "\n" for text, row in zip(texts, rows, strict=True)))
    votes.write_text('{"id": "p0", "grade": 7}\n')
    arguments = ["--set", f"table:{path}", "--verifier", votes, "--format", "grade", "--no-report"]
    result = run("run", *arguments, "--out", tmp_path / "o", "--format-option", f"points={points}")
    assert result.exit_code == 0, result.output
    assert (noted in result.output) if noted else ("set's full points" not in result.output)


def test_a_set_with_grades_needs_a_format(tmp_path):
    rows = [
        {"id": f"p{n}", "problem": f"Prove {n}.", "proof": "By induction.", "points": n} for n in range(2)
    ]
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "votes.jsonl").write_text('{"id": "p0", "grade": 7, "verdict": true}\n')
    given = ["run", "--set", f"table:{tmp_path / 'set.jsonl'}", "--set-option", "max=10"]
    given += ["--verifier", tmp_path / "votes.jsonl", "--no-report", "--out", tmp_path / "o"]
    refused = run(*given)
    assert refused.exit_code == 1
    assert (
        "the set set has grades. Add --format grade --format-option points=10 to ask for points, or --format "
        in (" ".join(refused.output.split()))
    )
    assert not (tmp_path / "o").exists()
    for form in (["grade", "--format-option", "points=10"], ["verdict"]):
        assert run(*given, "--format", *form).exit_code == 0


def test_a_graded_set_is_asked_for_grades_and_measured(tmp_path, made):
    arguments = ["run", "--set", "x", "--model", "m", "--out", tmp_path / "o", "-n", 2, "--format", "grade"]
    arguments += ["--format-option", "accept=5", "--no-reference"]
    with JudgeServer(Script(reply=examiner)) as server:
        result = run(*arguments, "--verifier", server.url)
        assert result.exit_code == 0, result.output
        texts = asked(server)
    assert len(texts) == 12  # p6 has no grade
    assert all("The grades are 0, 1, 2, 3, 4, 5, 6, 7." in text and "POINT" in text for text in texts)
    assert not any("KNOWN" in text for text in texts)
    pairs, votes, info = read_run(tmp_path / "o")
    assert [pair.reference for pair in pairs[:2]] == ["", "A KNOWN solution."]
    assert [(vote.grade * 7, vote.verdict) for vote in votes[::2]] == [
        (pytest.approx(n + 1), n + 1 >= 5) for n in range(6)
    ]
    assert (info.verdict_format, info.grades) == ("grade", tuple(range(8)))
    assert info.settings["format"] == {"name": "grade", "options": {"accept": 5}}
    assert info.settings["shown"] == {"reference": 0, "rubric": 6}
    assert "The prompt shows a marking scheme of 6 of 6 pairs (--no-rubric leaves it out)." in info.notes
    assert any("Of its 7 pairs 6 have a grade" in note for note in info.notes)
    (found,) = json.loads((tmp_path / "o" / "report" / "report.json").read_text())["runs"]
    assert found["grades"]["of_votes"]["bias_points"]["value"] == pytest.approx(1)
    assert found["grades"]["of_votes"]["accuracy"]["value"] == pytest.approx(5 / 6)  # of grade 4 it says 5
    assert found["evaluation"]["metrics"]["accuracy"]["value"] == pytest.approx(5 / 6)
    assert found["first_errors"] is None
    assert "MAE (points)" in result.output
    page = (tmp_path / "o" / "report" / "report.html").read_text()
    assert "another grading" not in page
    assert "always 2.5, the mean" in page
    again = run("grades", tmp_path / "o", "--json", tmp_path / "g.json")
    assert again.exit_code == 0, again.output
    of_run = json.loads((tmp_path / "g.json").read_text())["verifiers"]["m"]
    assert of_run["of_means"]["mae_points"]["value"] == pytest.approx(1)
    chosen = run("best-of-k", tmp_path / "o", "--score", "grade", "--json", tmp_path / "b.json")
    assert chosen.exit_code == 0, chosen.output
    assert "3 problems" not in chosen.output


def test_what_is_shown_is_asked_anew_and_the_same_format_is_not(tmp_path, made):
    with JudgeServer(Script(reply=examiner)) as server:
        arguments = [
            "run",
            "--set",
            "x",
            "--model",
            "m",
            "--verifier",
            server.url,
            "--out",
            tmp_path / "o",
            "-n",
            1,
        ]
        arguments += ["--format", "grade", "--no-report"]
        for more, requests in (
            ([], 6),
            (["--reference"], 6),  # shown before too
            (["--no-reference"], 9),  # three pairs have one
            (["--format-option", "accept=3"], 9),  # the same prompt, read anew
            (["--format-option", "points=6"], 15),
        ):
            result = run(*arguments, *more)
            assert result.exit_code == 0, result.output
            assert len(server.chats()) == requests, more


def test_the_first_wrong_step_is_asked_of_numbered_steps(tmp_path, made):
    def reply(prompt: str, _: str) -> str:
        number = int(re.findall(r"Step 2: STEP([0-9])", prompt)[0])
        return f"Read.\n### First wrong step: {('none', 1, 1)[number % 3]}"

    with JudgeServer(Script(reply=reply)) as server:
        arguments = ["--set", "x", "--model", "m", "--verifier", server.url, "--out", tmp_path / "o", "-n", 1]
        result = run("run", *arguments, "--format", "first_error")
    assert result.exit_code == 0, result.output
    (found,) = json.loads((tmp_path / "o" / "report" / "report.json").read_text())["runs"]
    numbers = {name: one["value"] for name, one in found["first_errors"]["of_votes"].items()}
    assert numbers["exact_wrong"] == 0.5  # of steps 1, 2, 1, 2
    assert (numbers["exact_right"], numbers["within_one"], numbers["f1"]) == (1, 1, pytest.approx(2 / 3))
    assert found["grades"] is None
    assert "ProcessBench" in result.output


def test_gradings_of_one_proof_share_their_traces(tmp_path, made):
    texts = {"question": "Prove 0.", "proof": "STEP3."}
    made([Pair(pair_id=f"g{n}", question_id="q", label=None, grade=n / 7, **texts) for n in (3, 5)])
    with JudgeServer(Script(reply=lambda p, _: f"### Grade: {len(server.chats()) % 8}")) as server:
        arguments = ["--set", "x", "--model", "m", "--verifier", server.url, "--out", tmp_path / "o", "-n", 3]
        result = run("run", *arguments, "--format", "grade", "--no-report")
        assert result.exit_code == 0, result.output
        _, votes, info = read_run(tmp_path / "o")
        assert len(server.chats()) == 3
        again = run("run", *arguments, "--format", "grade", "--no-report")  # from the cache
        assert again.exit_code == 0, again.output
    assert info.settings["usage"] == read_run(tmp_path / "o")[2].settings["usage"]
    assert info.settings["usage"]["requests"] == info.settings["spent"]["requests"] == 3
    assert [vote.grade for vote in votes[:3]] == [vote.grade for vote in votes[3:]]
    assert len(votes) == 6


@pytest.mark.parametrize(
    ("arguments", "pairs", "said"),
    [
        (["--format", "grade"], [{"label": True}], "no pair of the set made has a grade"),
        (["--format", "first_error"], [{"label": True}], "has a first wrong step"),
        (["--format", "verdict"], [{"grade": 1.0}], "no pair of the set made has a label"),
        (["--format", "grades"], [{"grade": 1.0}], "Did you mean grade"),
        (["--format", "grade", "--format-option", "point=7"], [{"grade": 1.0}], "point"),
        (["--format", "grade", "--rubric"], [{"grade": 1.0}], "no pair has a rubric"),
        (["--reference"], [{"label": True, "reference": "R"}], "the prompt verifier has no {{ reference }}"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is(tmp_path, made, arguments, pairs, said):
    texts = {"question_id": "q", "question": "Q", "proof": "P"}
    made([Pair(pair_id="p", **texts, **{"label": None, **one}) for one in pairs])
    nowhere = ["--verifier", "http://127.0.0.1:9/v1", "--model", "m"]
    result = run("run", "--set", "x", *nowhere, "--out", tmp_path, *arguments)
    assert result.exit_code == 1
    assert said in result.output


@pytest.mark.parametrize(
    ("name", "options", "given", "expected"),
    [
        ("grade", {}, [7, "3", 0, None, "none", "", "5/7"], [1, 3 / 7, 0, None, None, None, 5 / 7]),
        ("grade", {"grades": [0, 0.5, 1]}, [0.5, "1"], [0.5, 1]),
        ("first_error", {}, [3, "none", -1, "0", None, "2.0"], [3, 0, 0, 0, None, 2]),
        ("first_error", {"first": 0}, [0, -1, 4], [1, 0, 5]),
        ("verdict", {}, [True, "false", "none"], [True, False, None]),
    ],
)
def test_answers_without_traces_are_read_by_the_format(tmp_path, name, options, given, expected):
    form = build_format(name, options)
    column = "verdict" if name == "verdict" else form.truth
    rows = [{"pair_id": "p0", column: value} for value in [*given, "NA", float("nan")]]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = read_traces(tmp_path / "t.jsonl", of(PAIRS), form=form)
    field = "accepts" if name == "verdict" else form.truth
    expected = [*expected, None, None]
    found = [getattr(trace.answer, field) for trace in read.traces.values()]
    assert found == pytest.approx(expected)
    if name == "grade":
        assert [trace.answer.accepts for trace in read.traces.values()] == [
            None if share is None else share == 1 for share in expected
        ]
    allowed = {"verdict": "true or false", "grade": f"points from 0 to {max(form.grades or [0]):g}"}
    for odd in (9.5, "perhaps", [1]):
        (tmp_path / "u.jsonl").write_text(json.dumps({"pair_id": "p0", column: odd}))
        said = (
            f"line 1 of u.jsonl: its {column} is {odd!r}; expected {allowed.get(name, 'a number, 0 for no')}"
        )
        with pytest.raises(DataError, match=re.escape(said)):
            read_traces(tmp_path / "u.jsonl", of(PAIRS), form=form)
    assert [trace.missing for trace in read.traces.values()] == [
        "no verdict" if e is None else "" for e in expected
    ]


@pytest.mark.parametrize("name", ["verdict", "grade", "first_error"])
def test_a_row_is_found_by_the_mark_of_its_prompt(tmp_path, name):
    form = build_format(name)
    prompt = VerifierPrompt.load(form.prompt)
    rows = [
        {
            "input": text.replace("STEP", "step"),
            "output": "x",
        }  # the texts are not there: the mark alone tells
        for pair in PAIRS
        for shown in ({}, {"rubric": pair.rubric, "reference": pair.reference})
        for text in [prompt.messages(pair.question, pair.proof, steps=pair.steps, **shown)[0]["content"]]
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = read_traces(tmp_path / "t.jsonl", of(PAIRS), form=form)
    assert list(read.traces) == [(f"p{n}", sample) for n in range(7) for sample in (0, 1)]
