"""A run of the real verl that is stopped and resumed: the same data order, one budget, one cache, one ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")

from judge_server import JudgeServer, Script

from pv_judge.ledger import read_ledger
from pv_runs.run_record import read_record

pytestmark = pytest.mark.slow

PROMPTS, RESPONSES = 2, 2
STEPS, STOPPED = 4, 2
OVERRIDES = (
    "run=lab",
    "cluster=cpu",
    "reward=verdict_fluency",
    "seed=3",
    f"trainer.total_training_steps={STEPS}",
    "trainer.val_before_train=False",
    "trainer.test_freq=-1",
    f"data.train_batch_size={PROMPTS}",
    f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS}",
    f"actor_rollout_ref.rollout.n={RESPONSES}",
    "hydra.run.dir=run",
)


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / "said.log").open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "pv_rl.cli", "train", *arguments],
            cwd=folder,
            env={**os.environ, "PV_RL_TEST_KEY": "sk-planted-815"},
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def ended(process: subprocess.Popen[bytes], folder: Path) -> int:
    code = process.wait(400)
    assert read_record(folder / "run").state != "failed", (folder / "said.log").read_text()[-4000:]
    return code


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_that_is_stopped_goes_on_with_its_data_budget_cache_and_ledger(tmp_path):
    run = tmp_path / "run"
    with JudgeServer(Script()) as server:
        judge = (
            f"{{endpoints:[{{url:'{server.url}',model:judge,api_key_env:PV_RL_TEST_KEY}}],"
            "prices:{judge:{input:1.0,output:2.0}},cache:${trainer.default_local_dir}/judge/cache.sqlite}"
        )
        process = start(tmp_path, *OVERRIDES, f"+reward.custom_reward_function.reward_kwargs.judge={judge}")
        stop = run / "checkpoints" / "pv_rl_stop"
        while process.poll() is None and not (run / "rollouts" / f"{STOPPED - 1}.jsonl").exists():
            time.sleep(0.1)
        stop.touch()  # as somebody on another machine would
        assert ended(process, tmp_path) == 0
        first = [line["step"] for line in lines(run / "metrics.jsonl")]
        assert first == list(range(1, first[-1] + 1))
        assert first[-1] < STEPS
        assert not stop.exists()
        kept = run / "checkpoints/judge/spent.json"
        spent = json.loads(kept.read_text())["in_run"]
        asked = len(server.chats())
        assert spent["calls"] == asked
        kept.rename(run / "checkpoints/judge/ledger/spent.json")  # where earlier versions kept it

        assert ended(start(tmp_path, "--resume", "run"), tmp_path) == 0
        second = [line["step"] for line in lines(run / "metrics-2.jsonl")]
        assert second == list(range(first[-1] + 1, STEPS + 1))

        after = json.loads(kept.read_text())["in_run"]
        assert after["calls"] == len(server.chats()) > asked
        assert after["usd"] > spent["usd"]
        questions = [json.dumps(chat["body"]["messages"]) for chat in server.chats()]
        assert len(set(questions)) == len(questions)  # no trace is paid for twice, before or after

    rows = read_ledger(run / "checkpoints/judge/ledger").to_pylist()
    assert sorted(row["step"] for row in rows) == sorted(list(range(1, STEPS + 1)) * PROMPTS * RESPONSES)
    assert seen(run) == expected_order(run)
    assert b"sk-planted-815" not in b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )


def seen(run: Path) -> list[set[str]]:
    """The prompts of each step."""
    return [
        {row["input"] for row in lines(run / "rollouts" / f"{step}.jsonl")} for step in range(1, STEPS + 1)
    ]


def expected_order(run: Path) -> list[set[str]]:
    """The prompts of each step of a run that nobody stopped: the order in which verl's sampler draws with this seed."""
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

    return [{shown(index) for index in order[step * PROMPTS : (step + 1) * PROMPTS]} for step in range(STEPS)]
