"""`pv-rl train` with the real verl: rolled back by the sentinel, stopped by a file, resumed, stopped by the sentinel.

Two starts of the trainer. The tests read what they left behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from judge_server import JudgeServer, Script
from trainer import main_ppo

from pv_judge.ledger import read_ledger
from pv_runs.report.summary import summarise
from pv_runs.run_record import read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # two starts of the trainer in one fixture

PROMPTS, RESPONSES = 2, 2
KEY = "sk-planted-815"
ALARM = 2
"""First step that the sentinel watches. A rollback follows at the end of the next one."""
OVERRIDES = (
    "run=lab",
    "cluster=cpu",
    "reward=verdict_fluency",
    "sentinel=rollback",
    "+sentinel.agree=1",
    "+sentinel.within=1",
    f"+sentinel.from_step={ALARM}",
    "+sentinel.watch.limits.cut_off=[2,null]",  # no share is that large: an alarm at each step
    "seed=3",
    "trainer.total_training_steps=9",
    "trainer.save_freq=1",
    "trainer.val_before_train=False",
    "trainer.test_freq=-1",
    f"data.train_batch_size={PROMPTS}",
    f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS}",
    f"actor_rollout_ref.rollout.n={RESPONSES}",
    "logging=tensorboard",
    "hydra.run.dir=run",
)


@dataclass(frozen=True)
class Attempt:
    """What there was after one attempt."""

    exit_code: int
    said: str
    steps: list[int]
    metrics: dict[int, dict]
    events: list[tuple[str, int]]
    """All events of the sentinel so far."""
    saved: dict[int, list[bytes]]
    """The actor's tensors in each checkpoint."""
    spent: dict
    """Of the judge's budget, in the whole run."""
    asked: int
    """Requests that the judge has had."""


@dataclass(frozen=True)
class Resumed:
    folder: Path
    run: Path
    first: Attempt
    second: Attempt
    questions: list[str]
    """What the judge was asked, in both attempts."""


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / "said.log").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "pv_rl.cli", "train", *arguments],
            cwd=folder,
            env={**os.environ, "PV_RL_TEST_KEY": KEY},
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def whole_lines(path: Path) -> int:
    """How many lines of a file that grows are written to their end."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def tensors(checkpoint: Path) -> list[bytes]:
    """The actor's tensors, as the bytes that torch has saved."""
    (file,) = checkpoint.glob("actor/model_*.pt")
    with zipfile.ZipFile(file) as saved:
        return [saved.read(name) for name in sorted(saved.namelist()) if "/data/" in name]


def read_attempt(process: subprocess.Popen[bytes], run: Path, metrics: str, server: JudgeServer) -> Attempt:
    exit_code = process.wait(400)
    said = (run.parent / "said.log").read_text() + (run / "verl.log").read_text()
    assert (run / metrics).exists(), said[-4000:]
    logged = {line["step"]: line["data"] for line in lines(run / metrics)}
    checkpoints = (run / "checkpoints").glob("global_step_*")
    return Attempt(
        exit_code=exit_code,
        said=said,
        steps=list(logged),
        metrics=logged,
        events=[(line["event"], line["step"]) for line in lines(run / "sentinel.jsonl")],
        saved={int(one.name.rpartition("_")[2]): tensors(one) for one in checkpoints},
        spent=json.loads((run / "checkpoints/judge/spent.json").read_text())["in_run"],
        asked=len(server.chats()),
    )


@pytest.fixture(scope="module")
def resumed(tmp_path_factory) -> Resumed:
    folder = tmp_path_factory.mktemp("resumed")
    run = folder / "run"
    with JudgeServer(Script()) as server:
        judge = (
            f"{{endpoints:[{{url:'{server.url}',model:judge,api_key_env:PV_RL_TEST_KEY}}],"
            "prices:{judge:{input:1.0,output:2.0}},cache:${trainer.default_local_dir}/judge/cache.sqlite}"
        )
        process = start(folder, *OVERRIDES, f"+reward.custom_reward_function.reward_kwargs.judge={judge}")
        # In the step after the rollback; the sentinel would stop the run at the end of the next one.
        while process.poll() is None and whole_lines(run / "metrics.jsonl") <= ALARM:
            time.sleep(0.1)
        (run / "checkpoints" / "pv_rl_stop").touch()  # as somebody on another machine would
        first = read_attempt(process, run, "metrics.jsonl", server)
        assert first.exit_code == 0, first.said[-4000:]
        assert read_record(run).state == "stopped"
        assert not (run / "checkpoints" / "pv_rl_stop").exists()

        spent = run / "checkpoints/judge/spent.json"
        spent.rename(run / "checkpoints/judge/ledger/spent.json")  # where earlier versions kept it
        process = start(folder, "--resume", "run", "trainer.max_actor_ckpt_to_keep=1", "recipe.eta=0.3")
        second = read_attempt(process, run, "metrics-2.jsonl", server)
        questions = [json.dumps(chat["body"]["messages"]) for chat in server.chats()]
    return Resumed(folder, run, first, second, questions)


def test_a_stop_file_ends_a_run_after_its_step_and_resume_continues_with_the_next(resumed):
    first, second = resumed.first.steps, resumed.second.steps
    assert first == list(range(1, first[-1] + 1))
    assert first[-1] in (ALARM + 1, ALARM + 2)  # the step that was logged last, or the one after it
    assert second == [first[-1] + 1, first[-1] + 2]


def test_an_alarm_rolls_the_run_back_to_the_checkpoint_before_it_at_half_the_learning_rate(resumed):
    first = resumed.first
    thrown_away = ALARM + 1
    assert first.events[:2] == [("alarm", ALARM), ("rollback", thrown_away)]
    alarms = [first.metrics[step].get("pv_rl/sentinel/alarms") for step in range(1, thrown_away + 1)]
    assert alarms == [None, 1, None]
    assert first.metrics[thrown_away]["pv_rl/sentinel/rolled_back_to"] == ALARM - 1
    assert first.saved[thrown_away] == first.saved[ALARM - 1] != first.saved[ALARM]
    rates = {step: data["actor/lr"] for step, data in (first.metrics | resumed.second.metrics).items()}
    expected = {step: 2e-4 if step <= thrown_away else 1e-4 for step in rates}
    assert rates == pytest.approx(expected)


def test_a_resume_with_another_eta_is_told_and_reported_with_its_steps(resumed):
    begin = resumed.second.steps[0]
    assert f"recipe.eta: 0.6 before, 0.3 from step {begin}" in resumed.second.said
    entries = read_record(resumed.run).history
    assert [entry["first_step"] for entry in entries] == [1, begin]
    assert entries[1]["changed"] == {
        "recipe.eta": ["0.6", "0.3"],
        "trainer.max_actor_ckpt_to_keep": ["null", "1"],
    }
    assert entries[0]["files"].keys() >= {"data.train_files", "actor_rollout_ref.model.path"}
    summary = summarise(resumed.folder)
    (setting,) = summary.settings
    assert setting.label == f"balanced:0.6 then 0.3 from step {begin}@prompt"
    assert any(f"recipe.eta is 0.6 then 0.3 from step {begin}" in note for note in summary.notes)
    assert any(f"rolled back by its sentinel at step {ALARM + 1}" in note for note in summary.notes)
    etas = {
        step: data["pv_rl/eta"] for step, data in (resumed.first.metrics | resumed.second.metrics).items()
    }
    assert etas == {step: 0.6 if step < begin else 0.3 for step in etas}


def test_tensorboard_has_all_numbers_of_each_attempt_and_the_working_directory_has_none_of_it(resumed):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for folder, attempt in (("tensorboard", resumed.first), ("tensorboard/attempt-2", resumed.second)):
        events = EventAccumulator(str(resumed.run / folder))
        events.Reload()
        shown = {tag: [one.step for one in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
        logged = {name for data in attempt.metrics.values() for name in data}
        assert shown == {name: [s for s, data in attempt.metrics.items() if name in data] for name in logged}
    assert sorted(path.name for path in resumed.folder.iterdir()) == ["run", "said.log"]


def test_no_metric_of_a_run_is_a_folder_of_another(resumed):
    """As in a file store, where a metric is a file; MLflow writes `@` as `_at_`."""
    names = {
        name
        for attempt in (resumed.first, resumed.second)
        for data in attempt.metrics.values()
        for name in data
    }
    assert len(names) > 100
    assert [name for name in names if any(other.startswith(name + "/") for other in names)] == []


def test_a_resumed_sentinel_remembers_its_rollback_and_stops_the_run_with_a_checkpoint(resumed):
    second = resumed.second
    alarm, stop = second.steps
    assert second.events[-2:] == [("alarm", alarm), ("stop", stop)]
    assert [event for event, _ in second.events].count("rollback") == 1
    assert second.exit_code != 0
    assert "the sentinel stopped the run" in second.said
    # Saved by the sentinel and due by save_freq: once, or verl would remove it. And the one before stays.
    assert second.saved[stop] != second.saved[alarm]


def test_a_resumed_run_continues_its_budget_and_pays_for_no_trace_twice(resumed):
    first, second = resumed.first, resumed.second
    assert first.spent["calls"] == first.asked
    assert second.spent["calls"] == second.asked > first.asked
    assert second.spent["usd"] > first.spent["usd"]
    assert len(set(resumed.questions)) == len(resumed.questions)


def test_the_ledger_of_a_resumed_run_has_each_row_of_each_step_once(resumed):
    rows = read_ledger(resumed.run / "checkpoints/judge/ledger").to_pylist()
    steps = resumed.first.steps + resumed.second.steps
    assert sorted(row["step"] for row in rows) == sorted(steps * PROMPTS * RESPONSES)


def test_a_resumed_run_draws_its_prompts_in_the_order_of_a_run_that_nobody_stopped(resumed):
    steps = resumed.first.steps + resumed.second.steps
    seen = [{row["input"] for row in lines(resumed.run / "rollouts" / f"{step}.jsonl")} for step in steps]
    assert seen == expected_order(resumed.run, len(steps))


def test_the_judges_key_is_in_no_file_of_a_run(resumed):
    files = [path for path in resumed.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    assert KEY.encode() not in b"".join(path.read_bytes() for path in files)


def expected_order(run: Path, steps: int) -> list[set[str]]:
    """The prompts of each step: the order in which verl's sampler draws with this seed."""
    import pyarrow.parquet as pq
    import torch
    from transformers import AutoTokenizer

    prompts = pq.read_table(run / "data" / "train.parquet", columns=["prompt"]).column("prompt").to_pylist()
    order = torch.randperm(len(prompts), generator=torch.Generator().manual_seed(3)).tolist()
    tokenizer = AutoTokenizer.from_pretrained(run / "model")

    def shown(index: int) -> str:
        text = tokenizer.apply_chat_template(prompts[index], add_generation_prompt=True, tokenize=False)
        return tokenizer.decode(
            tokenizer(text, add_special_tokens=False)["input_ids"], skip_special_tokens=True
        )

    return [{shown(index) for index in order[step * PROMPTS : (step + 1) * PROMPTS]} for step in range(steps)]


@pytest.mark.paths
def test_a_sentinel_that_cannot_be_is_refused_before_anything_starts(tmp_path):
    done = main_ppo(tmp_path, "+sentinel.action=rolback")
    assert done.returncode != 0
    assert "Did you mean rollback" in done.stdout + done.stderr
    assert not (tmp_path / "metrics.jsonl").exists()
