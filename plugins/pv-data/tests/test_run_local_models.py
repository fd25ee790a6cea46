"""Local models: the same questions, seeds, keys and tables whoever serves them; nothing is started for nothing.

A small server (`local_model`) stands for vLLM's. A real model on a GPU: see docs/guides/data_set.md.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import panel
import psutil
import pytest
from local_model import LOG, asked, make_model, own_server
from panel import JudgeServer, Script, by_mark
from rich.console import Console
from typer.testing import CliRunner

from pv_data.asking.asker import Stopped
from pv_data.asking.kept_answers import Keeping, Question
from pv_data.asking.settings import Model
from pv_data.cli import app
from pv_data.records import Aside, Judgment, Label, Problem, Proof
from pv_data.run import servers
from pv_data.run.config import RunConfig, compose, read_run
from pv_data.run.folder import spent
from pv_data.run.generate import Generating
from pv_data.run.judge import Judging
from pv_data.run.local_executor import run_local
from pv_data.run.manifest import check_manifest, settings_of, with_revisions, write_manifest
from pv_data.run.stage import pending
from pv_data.serving import served
from pv_data.serving.checkpoint import MARK, fingerprint
from pv_data.serving.served import arguments_of, choose_gpus
from pv_data.table import read_rows, write_part
from pv_judge.config import read_config
from pv_rl.errors import ConfigError, DataError, SetupError

WORDS = ("SOUND", "a guess", "TORN", "MUMBLED SOUND")
"""Proofs that a local model reads; it mumbles at two of three seeds."""
EXAMPLE = compose("gsm8k_local", ["vars.data_dir=none", "vars.checkpoint=none"])
FORM = EXAMPLE.models["grader"].sampling["structured_outputs"]["regex"]
HELD = {"max_tokens": 400, "structured_outputs": {"regex": FORM}}
LOST = {
    "DEAF": "no answer: invalid_json",
    "REFUSED": "refused: HTTP 400",
    "CUT": "no answer: truncated",
}


def model(folder: Path, **more) -> dict:
    return {
        "local": {"checkpoint": str(folder), "engine": {"enforce_eager": True}},
        "sampling": {"temperature": 0.6, "max_tokens": 400},
        "retries": {"attempts": 2, "backoff_s": 0.01},
        **more,
    }


def settings(run: Path, folder: Path, *, votes: int = 1, **more) -> RunConfig:
    config = read_run(
        {
            "run_dir": str(run),
            "sources": [{"kind": "table", "path": "none.jsonl"}],
            "models": {"grader": model(folder)},
            "panel": [{"model": "grader", "votes": votes}],
            **more,
        }
    )
    return with_revisions(config, run)


def tables(run: Path, words: list[str]) -> None:
    problem = Problem(source="Test", native_id="0", text="Prove that 1 + 0 = 1.")
    proofs = [
        Proof(problem_id=problem.id, source="Test", method="proof", text=f"Proof number {n}: {word}.")
        for n, word in enumerate(words)
    ]
    write_part(run / "problems" / "00-00000.parquet", Problem, [problem], group=64)
    write_part(run / "proofs" / "00-00000.parquet", Proof, proofs, group=64)


def kept(run: Path) -> dict[str, tuple]:
    with sqlite3.connect(run / "answers.sqlite") as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone():
            return {}  # it is being made
        return {
            key: tuple(rest)
            for key, *rest in db.execute("SELECT key, CAST(text AS TEXT), model FROM answers")
        }


def comparable(run: Path) -> list:
    """All but times and the tokens that each server counts in its own way."""
    judgments = [
        replace(one, origin=replace(one.origin, time="", prompt_tokens=0, completion_tokens=0))
        for one in read_rows(run / "judgments", Judgment)
    ]
    aside = [(one.row, one.reason, one.content) for one in read_rows(run / "aside", Aside)]
    return [judgments, list(read_rows(run / "labels", Label)), aside]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch) -> Path:
    """A checkpoint; what is asked of it is in `tmp_path / "log"`."""
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    monkeypatch.setattr(served, "_command", own_server)
    monkeypatch.setattr(servers, "choose_server", lambda asked: "vllm")
    return make_model(tmp_path / "tiny")


def run_here(job) -> None:
    with servers.Servers(job.run, Console(quiet=True)) as started:
        run_local(started.reach(job), 1)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"endpoints": [{"url": "http://h/v1", "model": "m"}]}, "both are given"),
        ({"local": None}, "neither is given"),
        ({"local": {"checkpoint": "m", "gpus": 0}}, "gpus"),
        ({"local": {"checkpoint": " "}}, "the path of a folder"),
        ({"local": {"checkpoint": "m", "server": "sglang"}}, "local.server"),
        (
            {"local": {"checkpoint": "m", "engine": {"tensor_parallel_size": 2}}},
            "tensor_parallel_size is set by gpus",
        ),
        (
            {"local": {"checkpoint": "m", "engine": {"pipeline_parallel_size": 2}}},
            "pipeline_parallel_size is set by gpus",
        ),
        ({"local": {"checkpoint": "m", "engine": {"tokenizer": "t"}}}, "tokenizer is set by checkpoint"),
        ({"sampling": {"temperature": 0.6}}, "max_tokens of a local model is None"),
        ({"sampling": {"max_tokens": 9, "logit_bias": {}}}, "has no logit_bias; it has chat_template_kwargs"),
        (
            {"sampling": {"max_tokens": 9, "structured_outputs": {}}},
            "has one of regex, json, choice, grammar",
        ),
        ({"sampling": {"max_tokens": 9, "structured_outputs": "x"}}, "has one of regex"),
        ({"sampling": {"max_tokens": 9, "structured_outputs": {"regex": "a", "json": "b"}}}, "has one of"),
        ({"response_format": "json_object"}, "Leave it out"),
        ({"prices": {"m": {"input": 1, "output": 1}}}, "costs no dollars"),
    ],
)
def test_a_local_model_that_cannot_be_meant_is_refused(more, says):
    with pytest.raises(ConfigError, match=says):
        read_config(model(Path("m")) | more, Model, "models.m")


def test_one_folder_under_two_names_is_one_model_also_as_a_copy(tiny, tmp_path):
    copy = make_model(tmp_path / "other" / "tiny")
    panel = [{"model": "a"}, {"model": "b"}]
    for second in (tiny, copy):
        with pytest.raises(ConfigError, match="ask the same model with the same sampling"):
            settings(tmp_path, tiny, models={"a": model(tiny), "b": model(second)}, panel=panel)
    (copy / "model.safetensors").write_bytes(b"trained")
    settings(tmp_path, tiny, models={"a": model(tiny), "b": model(copy)}, panel=panel)
    with pytest.raises(DataError, match="holds no model"):
        settings(tmp_path, tmp_path / "nowhere")


def test_a_local_model_costs_nothing_also_where_an_endpoint_of_its_name_does(tmp_path):
    priced = {
        "endpoints": [{"url": "http://h/v1", "model": "tiny"}],
        "prices": {"tiny": {"input": 1.0, "output": 1.0}},
    }
    with pytest.raises(ConfigError, match="rename the folder"):
        settings(tmp_path, tmp_path / "tiny", models={"grader": model(tmp_path / "tiny"), "api": priced})


def test_a_run_folder_that_was_copied_goes_on_without_the_weights_until_something_is_to_be_asked(
    tiny, tmp_path
):
    run = tmp_path / "run"
    run.mkdir()
    made = settings(run, tiny, models={"grader": model(tiny, revision="fp8")})
    write_manifest(run, check_manifest(run, made))
    tables(run, ["SOUND"])
    gone = tmp_path / "gone" / "tiny"
    config = settings(run, gone, models={"grader": model(gone, revision="fp8")})
    assert config.models["grader"].revision == made.models["grader"].revision
    check_manifest(run, config)
    with pytest.raises(DataError, match="holds no model"):
        run_here(Judging(run=run, config=config))
    for other in ({"revision": "fp4"}, {"sampling": {"max_tokens": 5}}):
        with pytest.raises(DataError, match="holds no model"):
            settings(run, gone, models={"grader": model(gone, **other)})


def test_when_a_checkpoint_was_converted_is_no_part_of_its_hash(tiny):
    before = fingerprint(tiny)
    (tiny / MARK).write_text('{"model.pt": [1, 1795896855]}')
    assert fingerprint(tiny) == before
    (tiny / "other.json").write_text("{}")
    assert fingerprint(tiny) != before


@pytest.mark.parametrize(
    "strange", [{"presence_penalty": 1.5}, {"structured_outputs": {"choice": ["True", "False"]}}]
)
def test_transformers_is_not_asked_for_what_it_would_leave_out(strange, tiny, tmp_path, monkeypatch):
    tables(tmp_path, ["SOUND"])
    monkeypatch.setattr(servers, "choose_server", lambda asked: "transformers")
    monkeypatch.setattr(served, "_command", lambda *_: pytest.fail("something was started"))
    models = {"writer": model(tiny), "grader": model(tiny, sampling={"max_tokens": 9, **strange})}
    generate = [{"method": "rephrase", "model": "writer", "of": ["proof"]}]
    config = settings(tmp_path, tiny, models=models, generate=generate)
    for job in (Generating(run=tmp_path, config=config), Judging(run=tmp_path, config=config)):
        with pytest.raises(ConfigError, match=f"models.grader.sampling has {next(iter(strange))}, which"):
            run_here(job)


def test_an_answer_is_held_to_the_form_that_the_model_is_given(tiny, tmp_path):
    tables(tmp_path, [*WORDS, "DEAF"])
    config = settings(tmp_path, tiny, models={"grader": model(tiny, sampling=HELD)})
    run_here(Judging(run=tmp_path, config=config))
    judgments = list(read_rows(tmp_path / "judgments", Judgment))
    assert len(judgments) == 5
    assert all(re.fullmatch(FORM, one.text) for one in judgments)
    assert all(json.loads(one.origin.sampling).items() >= HELD.items() for one in judgments)
    assert not list(read_rows(tmp_path / "aside", Aside))


def test_whoever_waits_for_a_server_that_has_ended_is_told_so(tmp_path):
    started = servers.Servers(tmp_path, Console(quiet=True))
    stopped = Stopped("it has not answered for 60 s")
    assert started.why(stopped) is stopped
    up = servers._Up(
        stack=ExitStack(),
        model=read_config(model(tmp_path), Model, "m"),
        gpus=[],
        gone=lambda: "it ended, with 9",
    )
    started._up["grader"] = up
    assert str(started.why(stopped)) == "it has not answered for 60 s\ngrader: it ended, with 9"


def test_the_key_of_an_answer_hangs_on_the_weights_and_not_on_where_they_lie_or_what_serves_them(
    tiny, tmp_path
):
    question = Question(template="t@1", messages=[{"role": "user", "content": "hi"}])

    def key(folder: Path, **local) -> str:
        given = {"checkpoint": str(folder), **local}
        config = settings(tmp_path, folder, models={"grader": model(folder, local=given)})
        assert settings_of(config)["panel"][0]["asks"][0] == ["tiny", {}]
        return Keeping(config.models["grader"]).key(question, 0)

    first = key(tiny)
    moved = make_model(tmp_path / "elsewhere" / "tiny")
    assert key(moved, server="transformers", gpus=2, replicas=3, engine={"max_model_len": 99}) == first
    (moved / "model.safetensors").write_bytes(b"trained")
    assert key(moved) != first


def test_the_key_of_a_model_behind_an_endpoint_is_what_it_was():
    fields = {"endpoints": [{"url": "http://127.0.0.1:9/v1", "model": "judge", "extra_body": {"a": 1}}]}
    found = Keeping(read_config(fields | {"revision": "2"}, Model, "m")).key(
        Question(template="check@1", messages=[{"role": "user", "content": "hi"}]), 3
    )
    assert found == "188fef4882e915c3bdd6057f192b288a1a1bc617607358a4f981b60fe08c7505"  # of commit d3cb659


def test_what_is_asked_of_an_endpoint_carries_no_seed(tmp_path):
    tables(tmp_path, ["SOUND"])
    with JudgeServer(Script(reply=by_mark)) as server:
        run_local(Judging(run=tmp_path, config=panel.settings(tmp_path, server.url)), 1)
        assert len(server.chats()) == 4
        assert not any("seed" in one["body"] for one in server.chats())


def test_each_sample_and_each_attempt_has_a_seed_of_its_own():
    question = Question(template="t@1", messages=[{"role": "user", "content": "hi"}])
    seeds = [question.seed(sample, unread) for sample in range(50) for unread in range(6)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds[0] != Question(template="t@2", messages=question.messages).seed(0)


def test_a_stage_says_beforehand_just_what_it_asks(tiny, tmp_path):
    tables(tmp_path, [*WORDS * 4])
    config = settings(
        tmp_path,
        tiny,
        votes=2,
        generate=[
            {"method": "rephrase", "model": "grader", "of": ["proof"], "samples": 3},
            {"method": "naive_negative", "of": ["proof"]},
        ],
    )
    for job in (Generating(run=tmp_path, config=config), Judging(run=tmp_path, config=config)):
        asks = job.asks()
        said = [(one.question.messages[-1]["content"], one.sample) for c in pending(job) for one in asks(c)]
        before = len(asked(tmp_path / "log"))
        run_here(job)
        told = [prompt for prompt, _ in asked(tmp_path / "log")[before:]]
        # an unreadable answer is asked for twice, with another seed; all else once
        assert len(told) > len(said) if job.stage == "judge" else len(told) == len(said) > 0
        assert set(told) == {prompt for prompt, _ in said}
        seeds = {tuple(one) for one in asked(tmp_path / "log")[before:]}
        assert len(seeds) == len(told)


def test_a_local_model_is_served_while_it_is_needed_and_only_then(tiny, tmp_path, monkeypatch):
    tables(tmp_path, [*WORDS, *LOST])
    job = Judging(run=tmp_path, config=settings(tmp_path, tiny, votes=3))
    # whose server calls the model by its path, and needs further fields: neither is in the key or the provenance
    monkeypatch.setattr(servers, "choose_server", lambda asked: "transformers")
    monkeypatch.setattr(served, "_require", lambda server: None)
    run_here(job)
    assert not [one for one in psutil.Process().children() if "local_model.py" in " ".join(one.cmdline())]
    reasons = {
        one.content.split(": ")[1].rstrip("."): one.reason for one in read_rows(tmp_path / "aside", Aside)
    }
    assert LOST.items() <= reasons.items()
    judgments = list(read_rows(tmp_path / "judgments", Judgment))
    assert {one.origin.model for one in judgments} == {"tiny"}
    assert {one.origin.revision for one in judgments} == {job.config.models["grader"].revision}
    assert len({one.text for one in judgments}) == len(judgments)  # no two samples had the same seed
    assert spent(tmp_path).usd == 0
    before = len(asked(tmp_path / "log"))
    monkeypatch.setattr(served, "_command", lambda *_: pytest.fail("something was started"))
    run_here(job)  # all chunks are done
    for part in (tmp_path / "labels").iterdir():
        part.unlink()
    write_part(tmp_path / "proofs" / "00-00000.parquet", Proof, keep(tmp_path, LOST), group=64)
    labels = comparable(tmp_path)[0]
    run_here(job)  # all that is left was answered
    assert len(asked(tmp_path / "log")) == before
    assert comparable(tmp_path)[0] == [
        one for one in labels if one.proof_id in {p.id for p in keep(tmp_path, LOST)}
    ]


def keep(run: Path, lost) -> list[Proof]:
    """The proofs of a run that got all their votes."""
    aside = {one.row for one in read_rows(run / "aside", Aside)}
    return [
        one
        for one in read_rows(run / "proofs", Proof)
        if one.id not in aside and not any(word in one.text for word in lost)
    ]


CONFIG = """
run_dir: {run}
sources: [{{kind: table, path: {rows}, name: Mine, options: {{columns: {{problem: q, proof: p}}}}}}]
models: {{grader: {{local: {{checkpoint: {folder}}}, sampling: {{max_tokens: 100}}}}}}
panel: [{{model: grader, votes: 2}}]
budget_usd: 0
split: {{train_labels: [panel]}}
"""


def test_the_command_serves_it_and_a_dry_run_starts_nothing(tiny, tmp_path, monkeypatch):
    rows = [{"q": f"Prove that {n} + 0 = {n}.", "p": f"SOUND, by the axiom, {n} times."} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = CONFIG.format(run=tmp_path / "run", rows=tmp_path / "rows.jsonl", folder=tiny)
    (tmp_path / "mine.yaml").write_text(text)
    with monkeypatch.context() as patch:
        patch.setattr(served, "_command", lambda *_: pytest.fail("something was started"))
        told = CliRunner().invoke(app, ["run", str(tmp_path / "mine.yaml"), "--dry-run"])
    assert told.exit_code == 0, told.output
    assert "Local models cost no dollars" in told.output
    assert "0.00" in told.output
    assert not (tmp_path / "run").exists()
    for _ in range(2):
        done = CliRunner().invoke(app, ["run", str(tmp_path / "mine.yaml"), "filters.geometry=false"])
        assert done.exit_code == 0, done.output
        assert len(asked(tmp_path / "log")) == 6
    manifest = (tmp_path / "run" / "run.json").read_text()
    assert "127.0.0.1" not in manifest
    assert str(tiny) not in manifest


HERE = str(Path(__file__).parent)
CHILD = """
import sys
from pathlib import Path
from test_run_local_models import *
if __name__ == "__main__":
    served._command, servers.choose_server = own_server, lambda asked: "vllm"
    run = Path({run!r})
    try:
        run_here(Judging(run=run, config=settings(run, Path({folder!r}))))
    except Stopped:
        sys.exit(3)
"""


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 3), (signal.SIGKILL, -9)])
def test_the_server_is_gone_however_the_run_ends_and_what_it_answered_is_not_asked_again(
    how, code, tiny, tmp_path, monkeypatch
):
    tables(tmp_path, [f"SOUND {n}" for n in range(256)])
    program = tmp_path / "child.py"
    program.write_text(CHILD.format(run=str(tmp_path), folder=str(tiny)))
    child = subprocess.Popen(
        [sys.executable, str(program)],
        env={
            **os.environ,
            "PV_TEST_DELAY_S": "1",
            "PYTHONPATH": HERE + os.pathsep + os.environ["PYTHONPATH"],
        },
    )
    deadline = time.monotonic() + 60
    while len(kept(tmp_path)) < 64:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (server,) = psutil.Process(child.pid).children()
    child.send_signal(how)
    assert child.wait(timeout=30) == code
    _, alive = psutil.wait_procs([server], timeout=15)
    assert not alive
    known = {seed_of(text) for text, _ in kept(tmp_path).values()}
    before = len(asked(tmp_path / "log"))
    run_here(Judging(run=tmp_path, config=settings(tmp_path, tiny)))
    again = {seed for _, seed in asked(tmp_path / "log")[before:]}
    assert len(known | again) == 256
    assert not known & again
    assert len(list(read_rows(tmp_path / "labels", Label))) == 256


def seed_of(text: str) -> int:
    """The seed of an answer of `local_model`, which says it."""
    return int(text.split()[1].rstrip("."))


def test_a_server_that_does_not_come_up_ends_the_command_with_its_log(tiny, tmp_path, monkeypatch):
    tables(tmp_path, ["SOUND"])
    monkeypatch.setattr(served, "_command", lambda *_: [sys.executable, "-c", "raise SystemExit('no CUDA')"])
    with pytest.raises(SetupError, match="no CUDA"):
        run_here(Judging(run=tmp_path, config=settings(tmp_path, tiny)))


def test_the_engine_s_options_and_the_gpus_are_told_to_the_server(tiny):
    local = read_config(model(tiny), Model, "m").local
    assert local is not None
    engine = {"enforce_eager": False, "max_model_len": 512, "hf_overrides": {"a": 1}}
    local = replace(local, engine=engine, gpus=2, replicas=2)
    assert arguments_of(local) == [
        *("--no-enforce-eager", "--max-model-len", "512", "--hf-overrides", '{"a": 1}'),
        *("--tensor-parallel-size", "2", "--data-parallel-size", "2"),
    ]
    assert choose_gpus(local, list("012345"), ["1"]) == list("0234")
    assert choose_gpus(local, list("0123"), ["1"]) == []


@pytest.mark.paths
def test_the_workers_of_ray_ask_the_same_server_and_make_the_same_tables(tiny, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pv-data[ray]'")
    from pv_data.run.ray_executor import ray_started, run_on_ray

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    here, there = tmp_path / "here", tmp_path / "there"
    for run in (here, there):
        tables(run, [*WORDS * 18, *LOST])
    run_here(Judging(run=here, config=settings(here, tiny, votes=2)))
    job = Judging(run=there, config=settings(there, tiny, votes=2, executor="ray", workers=2))
    with ray_started(2), servers.Servers(there, Console(quiet=True)) as started:
        run_on_ray(started.reach(job), 2)
        assert not started.reach(job).served  # all of it is known
    assert comparable(there) == comparable(here)
    assert kept(there) == kept(here)
