"""Traces that were sampled before: every row finds its pair, or is counted under the reason why not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pv_data.export.prompt import VerifierPrompt
from pv_eval.sets.base import Candidate, EvalSet, build_set
from pv_eval.verifiers.recorded import read_traces
from pv_eval.verifiers.trace_cache import to_vote
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError


def small_set() -> EvalSet:
    made = [
        Pair(
            pair_id=f"p{n}",
            question_id="q",
            label=n == 0,
            question="Prove that $1 + 1 = 2$.",
            proof=f"By induction on {n}." + " It is clear." * n,
        )
        for n in range(3)
    ]
    return build_set("small", [Candidate(pair=pair) for pair in made])


def lines(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rows_are_found_by_id_by_text_and_by_prompt(tmp_path):
    found = small_set()
    first, second, third = found.pairs
    own = VerifierPrompt.load().messages(third.question, third.proof)[0]["content"]
    other = f"Please check.\n{second.question}\n\n{second.proof}\nIs it right?"
    rows = [
        {"pair_id": "p0", "trace": "a\n### True"},
        {"pair_id": "p0", "trace": "b\n### False"},
        {"problem": first.question, "proof": " By  induction on 0.", "trace": "c"},
        {"input": f"user\n{own}\nassistant\n", "output": "d\n### True"},
        {"input": other, "output": "e\n### False"},
        {"pair_id": "p9", "trace": "x"},
        {"input": "Something else.", "output": "x"},
        {"trace": "x"},
        {"id": "p1", "trace": "f"},
        {"id": "p9", "trace": "x"},
        {"id": "p2", "problem": first.question, "proof": first.proof, "trace": "g"},
        {"pair_id": "p1", "trace": 3},
    ]
    read = read_traces(lines(tmp_path / "t.jsonl", rows), found)
    assert {key: trace.text for key, trace in read.traces.items()} == {
        ("p0", 0): "a\n### True",
        ("p0", 1): "b\n### False",
        ("p0", 2): "c",
        ("p2", 0): "d\n### True",
        ("p1", 0): "e\n### False",
        ("p1", 1): "f",
        ("p0", 3): "g",
    }
    assert read.left_out == {
        "pair_id is not in the set": 1,
        "prompt holds no pair of the set": 1,
        "neither pair_id, nor problem and proof, nor a prompt": 1,
        "id is not in the set": 1,
        "neither trace nor verdict": 1,
    }


def test_a_proof_that_begins_another_is_not_taken_for_it(tmp_path):
    made = [
        Pair(pair_id=name, question_id="q", label=True, question="Prove it.", proof=proof)
        for name, proof in (("short", "First. Then."), ("long", "First. Then. Last."))
    ]
    found = build_set("s", [Candidate(pair=pair) for pair in made])
    rows = [{"input": f"Check. Prove it. {pair.proof} End.", "output": pair.pair_id} for pair in made]
    read = read_traces(lines(tmp_path / "t.jsonl", rows), found)
    assert {key[0]: trace.text for key, trace in read.traces.items()} == {"short": "short", "long": "long"}


def test_verdicts_without_a_trace_and_numbered_samples_are_read(tmp_path):
    rows = [
        {"pair_id": "p0", "verdict": "True", "sample": 1},
        {"pair_id": "p0", "verdict": False, "sample": 0},
        {"pair_id": "p1", "verdict": None, "sample": 0},
        {"pair_id": "p1", "verdict": "No", "sample": 1},
        *({"pair_id": "p2", "verdict": none, "sample": n} for n, none in enumerate(("NA", "nan", "#N/A"))),
    ]
    path = tmp_path / "t.csv"
    path.write_text(
        "pair_id,verdict,sample\n" + "".join(f"{r['pair_id']},{r['verdict']},{r['sample']}\n" for r in rows)
    )
    for one in (path, lines(tmp_path / "t.jsonl", rows)):
        read = read_traces(one, small_set())
        assert [
            (key, read.traces[key].answer.accepts, read.traces[key].missing) for key in sorted(read.traces)
        ] == [
            (("p0", 0), False, ""),
            (("p0", 1), True, ""),
            (("p1", 0), None, "no verdict"),
            (("p1", 1), False, ""),
            *((("p2", n), None, "no verdict") for n in range(3)),
        ]


@pytest.mark.parametrize("odd", ["maybe", "error", "T", "2", "0.5", "yes!"])
def test_a_verdict_that_cannot_be_read_is_refused_with_its_line(tmp_path, odd):
    (tmp_path / "v.csv").write_text(f"pair_id,verdict\np0,yes\np1,{odd}\n")
    said = (
        f"line 3 of v.csv: its verdict is '{odd}'; expected true or false (also 1/0, yes/no, correct/incorrect, "
        "right/wrong), or empty for none"
    )
    with pytest.raises(DataError, match=re.escape(said)):
        read_traces(tmp_path / "v.csv", small_set())


def test_labels_that_differ_from_the_sets_are_counted(tmp_path):
    rows = [{"pair_id": f"p{n}", "output": "x", "gts": "True"} for n in range(3)]
    read = read_traces(lines(tmp_path / "t.jsonl", rows), small_set())
    assert read.other_labels == 2
    assert any("2 rows of the file of traces have another label" in note for note in read.notes())


def test_a_folder_of_dumps_gives_its_last_step_unless_another_is_named(tmp_path):
    for step in (3, 12):
        lines(
            tmp_path / f"{step}.jsonl", [{"pair_id": "p0", "output": f"step {step}", "response_length": step}]
        )
    assert read_traces(tmp_path, small_set()).traces["p0", 0].text == "step 12"
    read = read_traces(tmp_path, small_set(), step=3)
    assert (read.traces["p0", 0].text, read.traces["p0", 0].tokens, read.counted) == ("step 3", 3, True)
    with pytest.raises(DataError, match=r"--step 3 is for a folder of dumps, and .*12\.jsonl is a file"):
        read_traces(tmp_path / "12.jsonl", small_set(), step=3)


def test_columns_of_another_name_are_those_that_the_user_names(tmp_path):
    """The named column is read although the file has a column of the usual name, here an index."""
    rows = [{"problem_id": "p0", "id": 7, "gold": "yes"}, {"problem_id": "p1", "id": 8, "gold": "no"}]
    path = lines(tmp_path / "votes.jsonl", rows)
    read = read_traces(path, small_set(), columns={"pair_id": "problem_id", "verdict": "gold"})
    votes = {key: trace.answer and trace.answer.accepts for key, trace in read.traces.items()}
    assert votes == {("p0", 0): True, ("p1", 0): False}
    with pytest.raises(
        DataError, match=r"votes\.jsonl has no column golt, which --column names; it has problem_id"
    ):
        read_traces(path, small_set(), columns={"pair_id": "problem_id", "verdict": "golt"})
    with pytest.raises(DataError, match="called otherwise by --column verdict=COLUMN"):
        read_traces(path, small_set(), columns={"pair_id": "problem_id"})
    with pytest.raises(
        ConfigError, match=r"--column has no 'verdct'\. Did you mean verdict\? Expected pair_id, "
    ):
        read_traces(path, small_set(), columns={"verdct": "gold"})


QUESTION, PROOF = small_set().pairs[0].question, small_set().pairs[0].proof


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({"problem": QUESTION, "output": PROOF, "verdict": "no"}, {"proof": "output"}),  # no trace
        ({"pair_id": "p0", "response": "no"}, {"verdict": "response"}),
        ({"pair_id": "p0", "text": "### True", "gold": "no"}, {"verdict": "gold"}),
        ({"pair_id": "p0", "trace": "### True", "answer": "### False"}, {"trace": "answer"}),
        ({"pair_id": 7, "q": QUESTION, "a": PROOF, "verdict": "no"}, {"problem": "q", "proof": "a"}),
        ({"problem": PROOF, "proof": QUESTION, "verdict": "no"}, {"problem": "proof", "proof": "problem"}),
        ({"pair_id": "p0", "verdict": "yes", "label": "no"}, {"verdict": "label"}),
    ],
)
def test_a_named_column_has_one_meaning_and_replaces_the_others_of_it(tmp_path, row, columns):
    read = read_traces(lines(tmp_path / "votes.jsonl", [row]), small_set(), columns=columns)
    vote = to_vote(small_set().pairs[0], 0, read.traces["p0", 0], unit="characters")
    assert (vote.verdict, read.other_labels) == (False, 0)


def test_a_row_without_a_named_column_is_not_read_from_the_column_that_it_replaces(tmp_path):
    rows = [{"pair_id": "p0", "gold": "yes"}, {"pair_id": "p1", "verdict": "yes"}]
    read = read_traces(lines(tmp_path / "v.jsonl", rows), small_set(), columns={"verdict": "gold"})
    assert (list(read.traces), read.left_out) == ([("p0", 0)], {"neither trace nor verdict": 1})
    for name in ("grade", "first_error"):
        with pytest.raises(ConfigError, match=f"--format verdict, which reads verdict; add --format {name}$"):
            read_traces(tmp_path / "v.jsonl", small_set(), columns={name: "gold"})
        path = lines(tmp_path / "other.jsonl", [{"pair_id": "p0", name: 1}])
        with pytest.raises(DataError, match=f"To read {name}, add --format {name}. Write"):
            read_traces(path, small_set())


def test_parquet_with_chats_is_read(tmp_path):
    first = small_set().pairs[0]
    messages = [dict(one) for one in VerifierPrompt.load().messages(first.question, first.proof)]
    pq.write_table(
        pa.Table.from_pylist([{"prompt": messages, "response": "x\n### True"}]), tmp_path / "t.parquet"
    )
    assert list(read_traces(tmp_path / "t.parquet", small_set()).traces) == [("p0", 0)]


def test_a_sample_that_is_there_twice_and_a_file_of_another_set_are_refused(tmp_path):
    twice = [{"pair_id": "p0", "trace": "a", "sample": 0}] * 2
    with pytest.raises(DataError, match="already has a sample 0"):
        read_traces(lines(tmp_path / "a.jsonl", twice), small_set())
    with pytest.raises(
        DataError,
        match=r"b\.jsonl has no vote on the set small: in every row, pair_id is not in .*such as 'p0'\. If .* "
        r"--set-option columns\.pair_id=COLUMN$",
    ):
        read_traces(lines(tmp_path / "b.jsonl", [{"pair_id": "z", "trace": "a"}]), small_set())
    with pytest.raises(DataError, match=r"its sample is 1\.5"):
        read_traces(
            lines(tmp_path / "c.jsonl", [{"pair_id": "p0", "trace": "a", "sample": 1.5}]), small_set()
        )


def test_a_file_with_other_columns_is_told_which_it_has_and_what_is_needed(tmp_path):
    (tmp_path / "v.csv").write_text("item,answer\np0,yes\np1,no\n")
    said = (
        "v.csv has no vote on the set small: in every row, neither pair_id, nor problem and proof, nor a prompt. It "
        "has the columns item, answer. Write one vote a row: pair_id (or id, if the set has it), "
    )
    with pytest.raises(DataError, match=re.escape(said) + ".* and a trace, or verdict: true or false"):
        read_traces(tmp_path / "v.csv", small_set())


@pytest.mark.parametrize("sample", [{}, {"sample": 0}])
@pytest.mark.parametrize("column", ["verifier", "model"])
def test_votes_of_several_verifiers_are_not_merged(tmp_path, column, sample):
    def rows(names):
        return [{"pair_id": pair, column: who, "verdict": True, **sample} for pair, who in names]

    both = rows([("p0", "alpha"), ("p0", "beta"), ("p1", "beta")])
    said = rf"^both.jsonl has votes of 2 verifiers \(column {column}: alpha, beta\); write one file for each$"
    with pytest.raises(DataError, match=said):
        read_traces(lines(tmp_path / "both.jsonl", both), small_set())
    read_traces(lines(tmp_path / "one.jsonl", rows([("p0", "alpha"), ("p1", "alpha")])), small_set())


def test_the_column_model_may_name_who_wrote_the_proof(tmp_path):
    rows = [{"pair_id": f"p{n}", "model": f"m{n}", "verdict": True} for n in (0, 1, 0, 1)]
    assert len(read_traces(lines(tmp_path / "t.jsonl", rows), small_set()).traces) == 4


def test_a_file_brings_the_logits_of_its_verdicts(tmp_path):
    rows = [
        {"pair_id": "p0", "output": "fine ### True", "logit": 1.5},
        {"pair_id": "p0", "verdict": False, "logit": "-2"},
    ]
    rows += [{"pair_id": "p1", "output": "### True"}]
    lines(tmp_path / "a.jsonl", rows)
    traces = read_traces(tmp_path / "a.jsonl", small_set()).traces
    pair = small_set().pairs[0]
    votes = [to_vote(pair, sample, traces["p0", sample], unit="characters") for sample in (0, 1)]
    assert [(vote.verdict, vote.logit) for vote in votes] == [(True, 1.5), (False, -2.0)]
    assert traces["p1", 0].logit is None
    for bad in ("high", float("inf")):
        lines(tmp_path / "b.jsonl", [{"pair_id": "p0", "output": "### True", "logit": bad}])
        with pytest.raises(DataError, match="its logit is"):
            read_traces(tmp_path / "b.jsonl", small_set())
