"""`pv-eval run` and `pv-eval best-of-k` from the command line, against a server and against files."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from eval_cases import by_mark, model, run, small_set
from judge_server import Fault, JudgeServer, Latency, Script

from pv_data.serving.served import Served
from pv_eval import __version__, read_run
from pv_eval.cli import app, data_app
from pv_eval.run_files import find_runs
from pv_eval.verifiers.gather import kind_of
from pv_rl.errors import ConfigError


def test_votes_and_their_record_are_written_and_the_report_with_them(tmp_path):
    out = tmp_path / "out"
    with JudgeServer(Script(reply=by_mark, faults=[Fault(kind="refusal", requests=[5])])) as server:
        arguments = ["run", "--set", f"table:{small_set(tmp_path)}", "--verifier", server.url, "--out", out]
        arguments += ["--model", "judge", "-n", 2, "--client", "limits.concurrency=1"]
        priced = ("--client", "prices={judge: {input: 1.0, output: 2.0}}")
        result = run(*arguments, *priced)
        assert result.exit_code == 0, result.output
        assert len(server.chats()) == 16
    pairs, votes, info = read_run(out)
    assert [pair.label for pair in pairs] == [True, False] * 4
    assert len(votes) == 16
    # sample 0 of all pairs goes first: the fifth request is p4's, which was refused
    assert [(vote.pair_id, vote.sample) for vote in votes if vote.verdict is None] == [("p4", 0)]
    label = {pair.pair_id: pair.label for pair in pairs}
    wrong = {vote.pair_id for vote in votes if vote.verdict is (not label[vote.pair_id])}
    assert wrong == {"p3"}
    assert (info.verifier, info.set_name, info.length_unit) == ("judge", "set", "tokens")
    assert (info.verdict_format, info.temperature) == ("verdict", 0.6)
    assert "Traces without a verdict because of the model itself, of 16: refusal: 1." in info.notes
    spent = info.settings["spent"]
    assert spent["requests"] == 16
    used = info.settings["usage"]
    # in millionths: 1 a token of a prompt, 2 a token of an answer
    paid = (used["prompt_tokens"] + 2 * used["completion_tokens"]) / 1e6
    assert used["requests"] == 16
    assert spent["usd"] == pytest.approx(paid)
    assert sum(vote.usd or 0 for vote in votes) == pytest.approx(paid)
    cost = f"A verdict took ${paid / 16:.3g}, {used['prompt_tokens'] / 16:.0f} prompt tokens, "
    assert cost in result.output
    assert info.settings["date"] == datetime.now(UTC).date().isoformat()
    assert info.settings["versions"]["pv-eval"] == version("pv-eval")
    assert info.settings["sampling"]["n"] == 2
    assert info.settings["prompt"].startswith("verifier@")
    report = json.loads((out / "report" / "report.json").read_text())
    assert report
    again = run(*arguments, *priced)  # all of it is known: no server is needed any more
    assert again.exit_code == 0, again.output
    assert read_run(out)[1] == votes
    assert run(*arguments).exit_code == 0
    assert {vote.usd for vote in read_run(out)[1]} == {None}  # prices are not in the cache, tokens are
    assert read_run(out)[2].settings["usage"] == used


def serving(monkeypatch, script: Script, gone=lambda server: "") -> list[Path]:
    """Serve checkpoints by a test server; returns the folders that were served."""
    started = []

    @contextmanager
    def served(folder: Path, *, server: str, log: Path, arguments):
        started.append(folder)
        with JudgeServer(script) as one:
            yield Served(
                url=one.url, model="m", server=server, at_once=8, gone=lambda: gone(one), fields={"top_k": 0}
            )

    monkeypatch.setattr("pv_eval.verifiers.gather.served", served)
    monkeypatch.setattr("pv_eval.verifiers.gather.choose_server", lambda asked: "vllm")
    return started


def test_a_checkpoint_is_served_once_and_not_at_all_where_all_is_known(tmp_path, monkeypatch):
    started = serving(monkeypatch, Script(reply=by_mark))
    folder = model(tmp_path / "step")
    arguments = ["run", "--set", f"table:{small_set(tmp_path)}", "--verifier", folder]
    arguments += ["-n", 1, "--no-report", "--out", tmp_path / "out"]
    for _ in range(2):
        result = run(*arguments)
        assert result.exit_code == 0, result.output
    assert len(started) == 1
    _, votes, info = read_run(tmp_path / "out")
    assert [vote.verdict for vote in votes] == [True, False, True, True, True, False, True, False]
    assert all(vote.length for vote in votes)
    assert (info.verifier, info.settings["verifier"]["server"]) == ("step", "vllm")
    model(folder, b"other weights")  # under the same name
    assert run(*arguments).exit_code == 0
    assert len(started) == 2


def test_a_server_that_dies_while_it_is_asked_ends_it_at_once(tmp_path, monkeypatch):
    def gone(server: JudgeServer) -> str:
        return "the server ended by itself" if server.chats() else ""

    serving(monkeypatch, Script(reply=by_mark, latency=Latency(median_s=300)), gone)
    arguments = ["--set", f"table:{small_set(tmp_path)}", "--verifier", model(tmp_path / "m")]
    result = run("run", *arguments, "-n", 1, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "the server ended by itself. 0 of 8 traces are there" in result.output


def test_a_verifier_is_told_by_what_it_is(tmp_path):
    (tmp_path / "global_step_3" / "actor").mkdir(parents=True)
    (tmp_path / "global_step_3" / "actor" / "model_world_size_1_rank_0.pt").write_bytes(b"0")
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "5.jsonl").write_text("{}\n")
    kinds = {
        "http://host:1/v1/chat/completions": "endpoint",
        str(model(tmp_path / "m")): "checkpoint",
        str(tmp_path / "global_step_3"): "checkpoint",
        str(tmp_path / "dumps"): "traces",
        str(tmp_path / "dumps" / "5.jsonl"): "traces",
    }
    assert {given: kind_of(given) for given in kinds} == kinds
    for wrong in (str(tmp_path), str(tmp_path / "nowhere"), "Qwen/Qwen3-8B"):
        with pytest.raises(ConfigError, match="give an address"):
            kind_of(wrong)


def test_traces_of_a_file_need_no_server(tmp_path):
    traces = tmp_path / "traces.jsonl"
    rows = [{"pair_id": f"p{n}", "trace": f"x\n### {n % 2 == 0}"} for n in range(8) for _ in range(3)]
    traces.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run(
        "run",
        "--set",
        f"table:{small_set(tmp_path)}",
        "--verifier",
        traces,
        "--out",
        tmp_path / "out",
        "--no-report",
    )
    assert result.exit_code == 0, result.output
    _, votes, info = read_run(tmp_path / "out")
    assert len(votes) == 24
    assert all(vote.verdict is (int(vote.pair_id[1:]) % 2 == 0) for vote in votes)
    assert (info.verifier, info.length_unit, info.temperature) == ("traces", "characters", None)

    dumps = tmp_path / "grpo-seed-0" / "validation"
    dumps.mkdir(parents=True)
    traces.rename(dumps / "40.jsonl")
    result = run(
        "run",
        "--set",
        f"table:{small_set(tmp_path)}",
        "--verifier",
        dumps,
        "--out",
        tmp_path / "of",
        "--no-report",
    )
    assert result.exit_code == 0, result.output
    assert read_run(tmp_path / "of")[2].verifier == "grpo-seed-0, step 40"

    chosen = run("best-of-k", tmp_path / "out", "--json", tmp_path / "best.json")
    assert "best of k by share of accepting votes: 2 problems with 4 candidates each\n" in chosen.output
    assert chosen.exit_code == 0, chosen.output
    curves = json.loads((tmp_path / "best.json").read_text())["verifiers"]["traces"]["curves"]
    # two of four candidates are right; a perfect verifier misses only where both of k are wrong: 1 - 1/6 for k = 2
    assert [round(one["value"], 6) for one in curves["uniform"]] == [0.5, round(5 / 6, 6), 1.0, 1.0]
    assert [one["value"] for one in curves["random"]] == [0.5] * 4


def test_a_part_of_a_set_is_no_choice_of_its_order_and_is_said(tmp_path):
    def kept(limit: int) -> set[str]:
        with JudgeServer(Script(reply=by_mark)) as server:
            arguments = [
                "--set",
                f"table:{small_set(tmp_path)}",
                "--verifier",
                server.url,
                "--model",
                "m",
                "-n",
                1,
            ]
            result = run("run", *arguments, "--limit", limit, "--out", tmp_path / f"{limit}", "--no-report")
            assert result.exit_code == 0, result.output
        pairs, _, info = read_run(tmp_path / f"{limit}")
        assert any(f"A part of {limit} of its 8 pairs" in note for note in info.notes)
        return {pair.pair_id for pair in pairs}

    few, more = kept(3), kept(5)
    assert few < more
    assert few != {"p0", "p1", "p2"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--verifier", "http://127.0.0.1:9/v1"], "an endpoint needs --model"),
        (["--verifier", "nowhere"], "give an address"),
        (
            ["--verifier", "http://127.0.0.1:9/v1", "--model", "m", "--top-p", "2"],
            "a number above 0, up to 1",
        ),
        (["--verifier", "http://127.0.0.1:9/v1", "--model", "m", "--client", "limit.x=1"], "limit"),
        (
            ["--verifier", "http://127.0.0.1:9/v1", "--model", "m", "--client", "endpoints=1"],
            "--verifier and --model",
        ),
        (["--verifier", "http://127.0.0.1:9/v1", "--model", "m", "--prompt", "none.txt"], "cannot be read"),
        (["--verifier", "http://127.0.0.1:9/v1", "--model", "m", "--train", "SET"], "were trained on"),
        (["--verifier", "http://127.0.0.1:9/v1", "--model", "m", "--limit", "0"], "--limit is 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_before_anything_is_asked(tmp_path, arguments, said):
    path = small_set(tmp_path)
    arguments = [str(path) if one == "SET" else one for one in arguments]
    result = run("run", "--set", f"table:{path}", "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 1
    assert said in result.output
    assert isinstance(result.exception, SystemExit)
    assert result.output.splitlines()[-1].startswith("error ")


def test_a_server_that_cannot_be_reached_ends_it_and_writes_no_votes(tmp_path):
    arguments = [
        "--set",
        f"table:{small_set(tmp_path, 80)}",
        "--verifier",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
    ]
    arguments += ["--client", "retries.attempts=1", "--client", "breaker.failures=10000"]
    result = run("run", *arguments, "-n", 1, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "50 requests in a row failed; the last error: " in result.output
    assert not (tmp_path / "out" / "votes.parquet").exists()


def test_an_evaluation_without_an_answer_fails_with_the_servers_words(tmp_path):
    out = tmp_path / "out"
    arguments = [
        "run",
        "--set",
        f"table:{small_set(tmp_path)}",
        "--model",
        "no-such-model",
        "-n",
        1,
        "--out",
        out,
    ]
    arguments += ["--client", "retries.attempts=1"]
    fault = Fault(kind="status", status=404, text="the model `no-such-model` does not exist")
    with JudgeServer(Script(faults=[fault])) as server:
        wrong_name = run(*arguments, "--verifier", server.url)
    dead_port = run(*arguments, "--verifier", server.url)
    assert "the model `no-such-model` does not exist" in wrong_name.output
    for result in (wrong_name, dead_port):
        assert result.exit_code == 3
        assert "none of 8 requests was answered" in result.output
        assert not (out / "votes.parquet").exists()
    with JudgeServer(Script(reply=by_mark)) as server:
        assert run(*arguments, "--verifier", server.url, "--no-report").exit_code == 0
    kept = read_run(out)[1]
    more = [2 if one == 1 else one for one in arguments]  # votes
    assert run(*more, "--verifier", server.url).exit_code == 3
    assert read_run(out)[1] == kept


def test_a_run_whose_last_prompts_are_too_long_can_be_made_again(tmp_path):
    arguments = ["run", "--set", f"table:{small_set(tmp_path)}", "--model", "m", "-n", 1, "--no-report"]
    arguments += ["--out", tmp_path / "out"]
    text = "This model's maximum context length is 4096 tokens"
    fault = Fault(kind="status", status=400, text=text, contains="guess")
    with JudgeServer(Script(reply=by_mark, faults=[fault])) as server:
        for asked in (8, 12):  # four are too long, and asked again
            result = run(*arguments, "--verifier", server.url)
            assert result.exit_code == 0, result.output
            assert "context_length: 4" in result.output
            assert len(server.chats()) == asked
            (tmp_path / "out" / "run.json").unlink()  # as if it had been stopped
    with JudgeServer(
        Script(faults=[replace(fault, contains="")])
    ) as server:  # nothing is known of the other seed
        result = run(*arguments, "--seed", 1, "--verifier", server.url)
    assert result.exit_code == 3
    assert text in result.output


def test_another_sampling_is_another_run_in_the_folder(tmp_path):
    out = tmp_path / "out"
    with JudgeServer(Script(reply=by_mark)) as server:
        arguments = ["run", "--set", f"table:{small_set(tmp_path)}", "--verifier", server.url, "--model", "m"]
        arguments += ["--out", out, "--no-report"]

        def runs(*more: object) -> dict[str, int]:
            result = run(*arguments, *more)
            assert result.exit_code == 0, result.output
            found = sorted(path.parent for path in out.rglob("run.json"))
            return {"" if path == out else path.name: len(read_run(path)[1]) for path in found}

        assert runs("-n", 2) == {"": 16}
        assert runs("-n", 3) == {"": 24}  # more samples of the same run
        assert runs("-n", 2) == {"": 24, "fewer votes": 16}
        assert runs("-n", 2, "--temperature", 1) == {"": 24, "fewer votes": 16, "temperature=1.0": 16}
        assert runs("-n", 3, "--temperature", 1) == {"": 24, "fewer votes": 16, "temperature=1.0": 24}


def read_votes(tmp_path, votes, out, *more):
    """A run of recorded votes on the small set, without its report."""
    found = f"table:{small_set(tmp_path)}"
    return run("run", "--set", found, "--verifier", votes, "--out", out, "--no-report", *more)


def test_a_folder_that_holds_another_run_is_named(tmp_path):
    out = tmp_path / "o"
    for name in ("alpha", "beta"):
        votes = tmp_path / f"{name}.jsonl"
        votes.write_text('{"id": "p0", "verdict": "yes"}')
        result = read_votes(tmp_path, votes, out)
        assert result.exit_code == 0, result.output
        said = f"{out} holds a run of alpha; this run of beta is in {out}/"
        assert (said in result.output) == (name == "beta")
        assert "7 of 8 pairs have no votes" in result.output
    written = run("report", out)
    assert written.exit_code == 0, written.output
    more = "comparison of verifiers, majority and best-of-k: " + str(out / "report" / "report.md")
    assert more in written.output.replace("\n", " ")


def test_a_run_that_an_option_stops_leaves_no_folder(tmp_path):
    (votes := tmp_path / "votes.jsonl").write_text('{"id": "p0", "opinion": "yes"}')
    for verifier in (votes, "http://127.0.0.1:9/v1"):  # the endpoint needs --model
        arguments = ["--set", f"table:{small_set(tmp_path)}", "--verifier", verifier]
        assert run("run", *arguments, "--out", tmp_path / "runs" / "a").exit_code == 1
    assert not (tmp_path / "runs").exists()


def test_votes_of_two_columns_of_a_file_are_two_runs(tmp_path):
    out, votes = tmp_path / "o", tmp_path / "votes.jsonl"
    votes.write_text('{"id": "p0", "first": "yes", "second": "no"}')
    for column in ("first", "second", "first"):
        assert read_votes(tmp_path, votes, out, "--column", f"verdict={column}").exit_code == 0
    found = {path.name: read_run(path)[1][0].verdict for path in find_runs([out])}
    assert found == {"o": True, "verifier.columns=verdict=second": False}


def test_the_commands_wait_for_nothing_heavy():
    code = (
        "import sys, pv_eval.cli\n"
        "print(*(sys.modules.keys() & {'numpy', 'scipy', 'pyarrow', 'matplotlib', 'torch', 'verl', 'httpx'}))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == []


def test_the_version_is_that_of_pv_eval():
    result = run("--version")
    assert (result.exit_code, result.output.strip()) == (0, __version__)


def test_pv_data_has_the_same_commands_under_their_older_names():
    older = {info.name: info.callback for info in data_app.registered_commands}
    assert older.keys() == {"eval", "report", "best-of-k", "eval-export"}
    assert set(older.values()) <= {info.callback for info in app.registered_commands}
