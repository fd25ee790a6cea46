"""`pv-rl score`: rewards on rollouts that are there already."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
from judge_server import Fault, JudgeServer, Script

from pv_rl.cli import app

LOOP = "It holds because of the bound in step one. " * 60 + "\n### True"
ROWS = [
    {"input": "p1", "output": "Step 2 fails.\n### False", "gts": "False", "step": 3},
    {"input": "p1", "output": LOOP, "gts": "True", "step": 3},
    {"input": "p2", "output": "All steps hold.\n### True", "gts": "False", "step": 3},
]


def score(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["score", *arguments], env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.fixture
def dump(tmp_path) -> str:
    """As verl dumps a step."""
    file = tmp_path / "3.jsonl"
    file.write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    return str(file)


def numbers(output: str) -> dict[str, str]:
    lines = [line.rsplit(maxsplit=1) for line in output.splitlines() if line.startswith(" ")]
    return {line[0].strip(): line[1] for line in lines if len(line) == 2}


def test_the_rules_and_the_verdict_score_a_dump_of_verl(dump, tmp_path):
    out = tmp_path / "scored.jsonl"
    code, output = score("--parquet", dump, "--out", str(out))
    assert code == 0, output
    said = numbers(output)
    assert (said["rows"], said["mean score"], said["vetoed"], said["acc"]) == (
        "3",
        "0.3333",
        "0.3333",
        "0.6667",
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["uid"], row["score"], row["metrics"]["vetoed"]) for row in rows] == [
        ("p1", 1.0, 0.0),
        ("p1", 0.0, 1.0),
        ("p2", 0.0, 0.0),
    ]
    assert [row["output"] for row in rows] == [row["output"] for row in ROWS]


def test_a_reward_and_its_options_are_named_on_the_command_line(dump, tmp_path):
    weights = "--set=rewards.verdict=2.0"
    assert numbers(score("--reward", "weighted", weights, "--parquet", dump)[1])["mean score"] == "1.3333"
    options = tmp_path / "options.yaml"
    options.write_text("rewards: {verdict: 5.0}\n")
    both = score("--reward", "weighted", "--options", str(options), "--limit", "2", "--parquet", dump)[1]
    assert numbers(both)["mean score"] == "5.0000"
    assert numbers(score("--reward=weighted", f"--options={options}", weights, "--parquet", dump)[1])[
        "mean score"
    ] == ("1.3333")


def test_a_judge_is_asked_and_what_it_did_is_said(dump):
    faults = [Fault(kind="refusal", contains="All steps hold")]
    with JudgeServer(Script(faults=faults)) as server:
        endpoints = f"--set=judge.endpoints=[{{url: '{server.url}', model: m}}]"
        code, output = score("--parquet", dump, endpoints)
        assert len(server.chats()) == 2
    assert code == 0, output
    said = numbers(output)
    assert (said["without a reward"], said["judge_failed"], said["judge: failed/refusal"]) == (
        "1",
        "0.3333",
        "1",
    )
    assert said["mean score"] == "0.5000"


def test_verls_parquet_with_a_nested_label_is_read(tmp_path):
    file = tmp_path / "rollouts.parquet"
    columns = {
        "response": [row["output"] for row in ROWS],
        "reward_model": [{"ground_truth": row["gts"], "style": "rule"} for row in ROWS],
    }
    pq.write_table(pa.table(columns), file)
    assert numbers(score("--reward", "verdict", "--parquet", str(file))[1])["mean score"] == "0.6667"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--reward", "verdit"], "Did you mean verdict"),
        (["--set", "vetoo=zero"], "vetoo"),
        (["--set", "judge.endpoints=["], "cannot be read"),
        (["--options", "/no/such.yaml"], "No such file"),
        (["--response-column", "text"], "has no column text of text; name one with --response-column"),
        (["--label-column", "text"], "has no column text; name one with --label-column"),
        (["--out", "/no/such/folder/x.jsonl"], "there is no folder"),
        (["--label-column", "input"], "line 1 of"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(dump, arguments, text):
    code, output = score("--parquet", dump, *arguments)
    assert code == 1
    assert text in " ".join(output.split())
    assert "Traceback" not in output
