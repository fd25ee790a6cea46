"""`pv-rl score`: rewards on rollouts that are there already."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from added_rewards import adding
from judge_server import Fault, JudgeServer, Script
from typer.testing import CliRunner

from pv_judge.scoring.command import read_options
from pv_judge.scoring.score_file import ScoreFile
from pv_rl.cli import app
from pv_rl.errors import ConfigError, DataError, SetupError
from pv_rl.hookspecs import RewardEntry
from pv_rl.rewards import RewardInput, RewardOutput

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
    lines = [line.rsplit(maxsplit=1) for line in output.splitlines() if "  " in line]
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
        (["--response-column", "text"], "has no column text of text. Name one with --response-column"),
        (["--label-column", "text"], "has no column text. Name one with --label-column"),
        (["--out", "/no/such/folder/x.jsonl"], "there is no folder"),
        (["--out", "/dev/null"], "--out /dev/null is not a regular file"),
        (["--label-column", "input"], "line 1 of"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(dump, arguments, text):
    code, output = score("--parquet", dump, *arguments)
    assert code == 1
    assert text in " ".join(output.split())
    assert "Traceback" not in output


@pytest.mark.parametrize(
    "text", ["7", "a: !!int ''", "a: !!bool so", "a: !!timestamp so", "- " * 900, "a: &a [*a]"]
)
def test_yaml_that_no_parser_can_read_is_refused(tmp_path, text):
    (tmp_path / "options.yaml").write_text(text)
    with pytest.raises(ConfigError, match="the options of the reward cannot be read"):
        read_options(tmp_path / "options.yaml", [])


@pytest.fixture
def many(tmp_path) -> Path:
    """Six rows, three right ones."""
    file = tmp_path / "many.jsonl"
    rows = [{"uid": f"p{n}", "output": f"Step {n}.\n### True", "gts": str(n % 2 == 0)} for n in range(6)]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return file


def arguments(many: Path, server: JudgeServer, out: Path) -> list[str]:
    endpoint = f"--set=judge.endpoints=[{{url: '{server.url}', model: m}}]"
    return ["--parquet", str(many), endpoint, "--out", str(out)]


def lines(out: Path) -> list[dict]:
    return [json.loads(line) for line in out.read_bytes().splitlines()]


def wait_for_lines(out: Path, count: int) -> None:
    until = time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < count:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_what_was_scored_is_there_when_it_is_stopped_and_is_not_paid_for_again(many, tmp_path, sent):
    out = tmp_path / "scored.jsonl"
    faults = [Fault(kind="hang", contains="Step 1."), Fault(kind="hang", contains="Step 4.")]
    with JudgeServer(Script(faults=faults)) as server:
        command = [sys.executable, "-m", "pv_rl.cli", "score", *arguments(many, server, out)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(
                signal.SIGINT, signal.SIG_DFL
            ),  # a shell's background ignores it
        )
        wait_for_lines(out, 4)
        process.send_signal(sent)
        said = process.communicate(timeout=60)[0]
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert f"4 of 6 rows are in {out}; the same command scores the others" in " ".join(said.split())
        assert "Traceback" not in said
    assert {row["uid"] for row in lines(out)} == {"p0", "p2", "p3", "p5"}

    with JudgeServer(port=int(server.url.split(":")[2].split("/")[0])) as again:
        faster = ("--set=judge.limits.concurrency=8", "--set=judge.budget.calls_per_run=9")
        code, output = score(*arguments(many, again, out), *faster)
        assert len(again.chats()) == 2
    assert code == 0, output
    assert (numbers(output)["rows"], numbers(output)["mean score"]) == ("6", "0.5000")
    assert [(row["row"], row["uid"], row["score"]) for row in lines(out)] == [
        (n + 1, f"p{n}", float(n % 2 == 0)) for n in range(6)
    ]


def test_a_row_that_the_judge_failed_for_is_scored_again(many, tmp_path):
    out = tmp_path / "scored.jsonl"
    with JudgeServer(Script(faults=[Fault(kind="refusal", contains="Step 1.")])) as server:
        command = arguments(many, server, out)
        code, output = score(*command)
    assert code == 0, output
    before = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["metrics"]["judge_failed"] for row in before].count(1.0) == 1
    with JudgeServer(port=int(server.url.split(":")[2].split("/")[0])) as again:
        code, output = score(*command)
        assert code == 0, output
        assert len(again.chats()) == 1
    after = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["row"] for row in after] == [row["row"] for row in before]
    assert all(row["valid"] for row in after)


def test_a_budget_goes_on_where_the_rows_do(many, tmp_path):
    out = tmp_path / "scored.jsonl"
    with JudgeServer() as server:
        for limit, sent in ((2, 2), (6, 3)):
            budget = ("--set=judge.budget.calls_per_run=3", f"--limit={limit}")
            code, output = score(*arguments(many, server, out), *budget)
            assert (code, len(server.chats())) == (0, sent), output
    assert [row["metrics"]["unjudged"] for row in lines(out)].count(1.0) == 3
    assert (tmp_path / "scored.jsonl.run" / "judge" / "spent.json").exists()


def test_a_last_line_without_its_end_is_scored_again_and_all_else_is_kept(many, tmp_path):
    out = tmp_path / "scored.jsonl"
    score("--reward=verdict", f"--parquet={many}", f"--out={out}")
    whole = out.read_bytes()
    first, second = whole.split(b"\n")[:2]
    for torn in (b"", b"{", second[:20], second[:30], second):
        out.write_bytes(first.replace(b'"score": 1.0', b'"score": 0.5') + b"\n" + torn)
        code, output = score("--reward=verdict", f"--parquet={many}", f"--out={out}")
        assert code == 0, output
        assert out.read_bytes() == whole.replace(b'"score": 1.0', b'"score": 0.5', 1)
        assert numbers(output)["mean score"] == "0.4167"


def other_rollouts(many: Path, out: Path) -> list[str]:
    many.write_text(many.read_text().replace("Step 5", "Step 6"))
    return []


def not_ours(many: Path, out: Path) -> list[str]:
    out.write_text("my notes")
    return []


def damaged(many: Path, out: Path) -> list[str]:
    out.write_text(out.read_text().replace('"score": 1.0', '"score": "1.0"', 1))
    return []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (other_rollouts, "has rows of another command (line 1)"),
        (not_ours, "has rows of another command (line 1)"),
        (lambda many, out: ["--set=rules.sentence_loop=false"], "has rows of another command"),
        (lambda many, out: ["--reward=verdict"], "has rows of another command"),
        (damaged, "line 1 of --out"),
    ],
)
def test_a_file_of_something_else_is_left_as_it_is(many, tmp_path, change: Callable, text):
    out = tmp_path / "scored.jsonl"
    assert score(f"--parquet={many}", f"--out={out}")[0] == 0
    more = change(many, out)
    before = out.read_bytes()
    code, output = score(f"--parquet={many}", f"--out={out}", *more)
    assert code == 1
    assert text in " ".join(output.split())
    assert out.read_bytes() == before


def test_two_commands_do_not_write_one_file(tmp_path):
    file = ScoreFile(tmp_path / "scored.jsonl", "0" * 16, lambda output: None)
    with pytest.raises(SetupError, match="another process writes"):
        ScoreFile(file.path, "0" * 16, lambda output: None)
    file.close()
    ScoreFile(file.path, "0" * 16, lambda output: None).close()


def test_a_file_that_another_command_has_just_put_in_order_is_not_written(tmp_path, monkeypatch):
    """Between opening and locking it, the other has replaced it and is done."""
    path = tmp_path / "scored.jsonl"
    lock = fcntl.flock

    def late(file, how):
        path.unlink()
        path.touch()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(SetupError, match="another process writes"):
        ScoreFile(path, "0" * 16, lambda output: None)


def test_a_link_stays_a_link_wherever_the_reward_moves_the_process(many, tmp_path, monkeypatch):
    class Moving(Sometimes):
        words = ()

        async def score(self, sample: RewardInput) -> RewardOutput:
            os.chdir("/")
            return await super().score(sample)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "folder" / "scored.jsonl")
    with adding(RewardEntry(name="odd", build=Moving)):
        code, output = score("--reward=odd", "--parquet=many.jsonl", "--out=link.jsonl")
    assert code == 0, output
    assert link.is_symlink()
    assert [row["row"] for row in lines(link)] == [1, 2, 3, 4, 5, 6]


def test_more_rows_can_be_asked_for_later(many, tmp_path):
    out = tmp_path / "scored.jsonl"
    for limit, rows in ((2, 2), (4, 4), (1, 4)):
        code, output = score("--reward=verdict", f"--parquet={many}", f"--out={out}", f"--limit={limit}")
        assert (code, numbers(output)["rows"]) == (0, str(rows))
        assert [row["row"] for row in lines(out)] == list(range(1, rows + 1))


def test_half_of_a_surrogate_pair_is_written_and_read_back(tmp_path):
    file, out = tmp_path / "a.jsonl", tmp_path / "scored.jsonl"
    file.write_text('{"output": "\\ud83d é \\u2028\\n### True", "gts": "True"}\n')
    for _ in range(2):
        assert score("--reward=verdict", f"--parquet={file}", f"--out={out}")[0] == 0
        (line,) = out.read_bytes().decode().split("\n")[:-1]
        assert json.loads(line)["output"] == "\ud83d é \u2028\n### True"


class Sometimes:
    """Fails for the rows whose response has one of these words."""

    words: tuple[str, ...] = ("Step 1.", "Step 4.")

    async def score(self, sample: RewardInput) -> RewardOutput:
        await asyncio.sleep(0.01 if "Step 0." in sample.response else 0)
        if any(word in sample.response for word in self.words):
            raise ValueError("no such step")
        return RewardOutput(score=1.0)


def test_a_row_for_which_the_reward_fails_is_named_and_tried_again(many, tmp_path, monkeypatch):
    out = tmp_path / "scored.jsonl"
    with adding(RewardEntry(name="odd", build=Sometimes)):
        code, output = score("--reward=odd", f"--parquet={many}", f"--out={out}")
        assert code == 1
        assert (
            f"the reward failed for 2 of 6 rows. The first: line 2 of {many}: the reward 'odd' of theirs raised "
            "ValueError: no such step (test_score.py, line "
        ) in " ".join(output.split())
        assert numbers(output)["rows"] == "4"
        assert [row["row"] for row in lines(out)] == [1, 3, 4, 6]
        monkeypatch.setattr(Sometimes, "words", ())
        assert score("--reward=odd", f"--parquet={many}", f"--out={out}")[0] == 0
    assert [row["row"] for row in lines(out)] == [1, 2, 3, 4, 5, 6]


def test_a_reward_that_fails_for_every_row_is_not_tried_to_the_end(tmp_path):
    calls = []

    class Broken:
        async def score(self, sample: RewardInput) -> Any:
            calls.append(sample)
            return 0.5

    file = tmp_path / "many.jsonl"
    file.write_text('{"output": "x", "gts": "True"}\n' * 100)
    with adding(RewardEntry(name="odd", build=Broken)):
        code, output = score("--reward=odd", f"--parquet={file}")
    assert (code, len(calls)) == (1, 20)
    said = " ".join(output.split())
    assert "failed for 20 of 20 rows, so the other 80 were not tried" in said
    assert "the reward 'odd' of theirs: `score` returned 0.5 (float); return RewardOutput(score=...)" in said
    assert "Traceback" not in said


def test_a_reward_that_cannot_be_built_or_prepared_is_one_line(many):
    def fail(*_: object):
        raise OSError("no model there")

    class Unprepared(Sometimes):
        prepare = fail

    for build in (fail, Unprepared):
        with adding(RewardEntry(name="odd", build=build)):
            code, output = score("--reward=odd", f"--parquet={many}")
        assert code == 1
        assert "error the reward 'odd' of theirs raised OSError: no model there" in " ".join(output.split())


class Answer:
    label_kind = "text"

    async def score(self, sample: RewardInput) -> RewardOutput:
        return RewardOutput(score=sample.response.endswith(sample.label))


def test_a_label_is_read_as_the_reward_asks_before_anything_is_scored(tmp_path):
    file, out = tmp_path / "rollouts.parquet", tmp_path / "scored.jsonl"
    labels = [{"ground_truth": "72"}, {"ground_truth": "1"}, {"ground_truth": ""}]
    pq.write_table(pa.table({"response": ["it is 72", "it is 2", "?"], "reward_model": labels}), file)
    with adding(RewardEntry(name="answer", build=Answer)):
        assert score("--reward=answer", f"--parquet={file}", "--limit=2", f"--out={out}")[0] == 0
        code, output = score("--reward=answer", f"--parquet={file}", f"--out={out}")
    assert [(row["label"], row["score"]) for row in lines(out)] == [("72", 1.0), ("1", 0.0)]
    assert code == 1
    assert f"row 3 of {file}: the label is ''; this reward expects a text" in " ".join(output.split())
    with pytest.raises(DataError, match="the label is '72'"):
        RewardInput(response="", label="72")
