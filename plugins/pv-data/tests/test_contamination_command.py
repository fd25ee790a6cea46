"""`pv-data contamination`: which problems of a run are in a test set, what a person decides, and embeddings."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.duplicates import embeddings
from pv_data.records import Problem, Qpc
from pv_data.run.manifest import write_manifest
from pv_data.table import read_rows, write_part

TEXT = "Let n be a positive integer. Prove that the sum of the first n odd numbers equals the square of n."


@pytest.fixture
def run(tmp_path):
    other = "Determine all primes p for which p squared plus two is a prime as well, and prove that there are no more."
    problems = [Problem(source="S", native_id=str(n), text=text) for n, text in enumerate((TEXT, other))]
    write_part(tmp_path / "run" / "problems" / "0.parquet", Problem, problems)
    write_manifest(tmp_path / "run", "{}")
    rows = [{"problem": TEXT.replace("Let", "Suppose"), "proof": "By induction on the number n of summands."}]
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_a_folder_that_is_no_run_is_not_called_clean(run):
    told = CliRunner().invoke(app, ["contamination", str(run / "rum"), "--against", f"table:{run}/set.jsonl"])
    assert told.exit_code == 1
    assert "rum is not a run folder" in " ".join(told.output.split())


def test_near_problems_are_counted_and_listed(run):
    told = CliRunner().invoke(
        app,
        [
            "contamination",
            str(run / "run"),
            "--against",
            f"table:{run}/set.jsonl",
            "--out",
            str(run / "out.md"),
        ],
    )
    assert told.exit_code == 0, told.output
    text = (run / "out.md").read_text()
    assert "| S | not exported | 2 | 1 |" in text
    assert "Suppose n be a positive integer" in text


def test_problems_are_counted_by_split(run):
    one, other = (problem.id for problem in read_rows(run / "run" / "problems", Problem))
    made = {"problem": "P", "proof": "Q", "label": True, "rule": "known", "slice": "S/proof/m"}
    triples = [
        Qpc(problem_id=problem, proof_id=split, split=split, **made)
        for problem, split in ((one, "train"), (other, "test"))
    ]
    write_part(run / "run" / "export" / "qpc" / "0.parquet", Qpc, triples)
    text = asked(run, "--pairs", str(run / "pairs.csv"))
    assert "| S | test | 1 | 0 |" in text
    assert "| S | train | 1 | 1 |" in text
    assert [row["split"] for row in sheet(run / "pairs.csv")] == ["train"]


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("set.jsonl", "give KIND:PATH"),
        ("tabel:set.jsonl", "Did you mean table"),
        ("table:none.jsonl", "none.jsonl"),
    ],
)
def test_a_set_that_is_not_there_is_said(run, against, says):
    told = CliRunner().invoke(app, ["contamination", str(run / "run"), "--against", against])
    assert told.exit_code == 1
    assert says in told.output


NEAR = "Let n be positive. Prove that the sum of the first n even numbers is less than the cube of n."


def asked(run: Path, *options: str, code: int = 0) -> str:
    """The output of the command on one line."""
    told = CliRunner().invoke(
        app, ["contamination", str(run / "run"), "--against", f"table:{run}/set.jsonl", *options]
    )
    assert told.exit_code == code, told.output
    return " ".join(told.output.split())


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def decide(path: Path, *decisions: str) -> None:
    rows = sheet(path)
    for row, decision in zip(rows, decisions, strict=True):
        row["decision"] = decision
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # as spreadsheets save it
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def near(run: Path) -> Path:
    """A run with one pair that counts and one below the threshold; its sheet is `pairs.csv`."""
    with (run / "set.jsonl").open("a") as file:
        file.write(json.dumps({"problem": NEAR, "proof": "By induction on the number n of factors."}) + "\n")
    return run


def test_a_sheet_has_both_texts_and_what_they_share(near: Path):
    text = asked(near, "--pairs", str(near / "pairs.csv"))
    assert "| S | not exported | 2 | 1 |" in text
    assert "Pairs for a person to decide, which do not count:" in text
    open_one, sure = sheet(near / "pairs.csv")
    assert (open_one["text"], open_one["test_text"]) == (TEXT, NEAR)
    assert 0.3 <= float(open_one["similarity"]) < 0.42 <= float(sure["similarity"])
    assert "positive" in open_one["shared"].split("; ")
    assert "odd" in open_one["only_here"].split("; ")
    assert "even" in open_one["only_there"].split("; ")


def test_what_a_person_decides_counts_and_stays_in_the_sheet(near: Path):
    path = near / "pairs.csv"
    asked(near, "--pairs", str(path))
    decide(path, "same", "")
    for _ in range(2):  # nothing is lost by running it again
        assert "to decide" not in asked(near, "--pairs", str(path))
        assert [row["decision"] for row in sheet(path)] == ["", "same"]
    decide(path, "different", "Different")
    text = asked(near, "--pairs", str(path), "--threshold", "0.9")
    assert "2 pairs do not count: a person decided that they are different." in text
    assert "| S | not exported | 2 | 0 |" in text


def test_decisions_that_cannot_be_read_or_would_be_lost_are_refused(near: Path):
    path = near / "pairs.csv"
    asked(near, "--pairs", str(path))
    decide(path, "same", "maybe")
    assert "decision is 'maybe'; expected same, different, or an empty cell" in asked(
        near, "--pairs", str(path), code=1
    )
    decide(path, "same", "same")
    before = path.read_bytes()
    (near / "set.jsonl").write_text(json.dumps({"problem": "Who is it?", "proof": "It is known."}) + "\n")
    assert "2 decisions on problems that are not in this run" in asked(near, "--pairs", str(path), code=1)
    assert path.read_bytes() == before
    assert "there is no folder" in asked(near, "--pairs", str(near / "no" / "pairs.csv"), code=1)


def test_a_text_is_no_formula_of_a_spreadsheet(run: Path):
    bad = '=HYPERLINK("http://x.org"), and for which numbers n is the sum of all digits of n prime?'
    write_part(
        run / "run" / "problems" / "0.parquet", Problem, [Problem(source="S", native_id="1", text=bad)]
    )
    (run / "set.jsonl").write_text(json.dumps({"problem": bad, "proof": "It is known."}) + "\n")
    asked(run, "--pairs", str(run / "pairs.csv"))
    assert sheet(run / "pairs.csv")[0]["text"] == "'" + bad


class Server(ThreadingHTTPServer):
    """An embedding server: a text's vector is one of two directions, by whether it is about odd numbers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[dict[str, Any]] = []
        self.busy = 1
        self.answer: Any = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        asked_for = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append({**asked_for, "path": self.path, "key": self.headers["Authorization"]})
        rows = [
            {
                "object": "embedding",
                "index": at,
                "embedding": [0.0, 2.0] if "奇数" in text or "odd" in text else [3.0, 0.1],
            }
            for at, text in enumerate(asked_for["input"])
        ][::-1]  # the order is in `index`
        status, body = 200, {"object": "list", "data": rows, "model": asked_for["model"]}
        if self.server.busy:
            self.server.busy -= 1
            status, body = 429, {"error": {"message": "slow down"}}
        elif self.server.answer is not None:
            status, body = self.server.answer
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Retry-After", "0.01")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def test_embeddings_show_a_translation_to_a_person(run: Path, server: Server, monkeypatch):
    monkeypatch.setattr(embeddings, "BATCH", 2)
    monkeypatch.setenv("MY_KEY", "sk-test-0123456789")
    chinese = "设n为正整数，证明：前n个奇数之和等于n的平方。"
    (run / "set.jsonl").write_text(json.dumps({"problem": chinese, "proof": "用归纳法证明。"}) + "\n")
    options = ["--embeddings", f"team/model@http://127.0.0.1:{server.server_port}/v1"]
    text = asked(run, *options, "--api-key-env", "MY_KEY", "--pairs", str(run / "pairs.csv"))
    assert "| S | not exported | 2 | 0 |" in text
    [row] = sheet(run / "pairs.csv")
    assert (row["text"], row["test_text"], row["cosine"]) == (TEXT, chinese, "1.0000")
    assert [(one["path"], one["model"], len(one["input"]), one["key"]) for one in server.seen] == [
        ("/v1/embeddings", "team/model", size, "Bearer sk-test-0123456789") for size in (2, 2, 1)
    ]  # the first was answered with 429


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((401, {"error": "no key sk-test-0123456789"}), "HTTP 401"),
        ((404, {"error": "no such model"}), "no such model"),
        ((200, {"data": []}), "another form"),
        ((200, [1]), "another form"),
        ((200, {"data": [{"index": 0, "embedding": [1.0]}] * 3}), "another form"),
        ((200, {"data": [{"index": at, "embedding": [1.0] * (at + 1)} for at in range(3)]}), "another form"),
        ((200, {"data": [{"index": at, "embedding": [0.0]} for at in range(3)]}), "another form"),
        ((200, {"data": [{"index": at, "embedding": ["x"]} for at in range(3)]}), "another form"),
        ((200, {"data": [{"index": at, "embedding": [float("nan")]} for at in range(3)]}), "another form"),
        ((307, {}), "HTTP 307"),
    ],
)
def test_a_server_that_gives_no_embeddings_is_reported(run: Path, server: Server, monkeypatch, answer, says):
    monkeypatch.setenv("MY_KEY", "sk-test-0123456789")
    server.busy, server.answer = 0, answer
    url = f"m@http://127.0.0.1:{server.server_port}/v1"
    text = asked(run, "--embeddings", url, "--api-key-env", "MY_KEY", code=1)
    assert says in text
    assert "0123456789" not in text
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("http://localhost:1/v1", "expected MODEL@URL"),
        ("bge-m3", "expected MODEL@URL"),
        ("m@http://user:pass@host/v1", "without a key or password"),
    ],
)
def test_an_embedding_server_that_is_none_is_refused(run: Path, given: str, says: str):
    assert says in asked(run, "--embeddings", given, code=1)
