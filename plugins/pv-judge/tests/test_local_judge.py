"""A real small model as judge: SmolLM2-135M-Instruct behind `transformers serve`, on the CPU.

It hardly ever writes the JSON that it is asked for. What is tested is that its answers are its own, are counted, and
that a row whose answer cannot be used gets what the policy says.

    PV_RL_TEST_JUDGE_MODEL=FOLDER pytest -m paths test_local_judge.py      # the folder: docs/guides/local_judge.md
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from pv_judge.answer import Answer, JudgeFailure, Question
from pv_judge.config import read_config
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.ledger import read_ledger
from pv_judge.ray_service import close_local_services
from pv_judge.service import JudgeService, ServiceConfig
from pv_rl.rewards import RewardInput, RewardOutput, build_reward

pytestmark = [pytest.mark.slow, pytest.mark.paths]

MODEL = os.environ.get("PV_RL_TEST_JUDGE_MODEL", "")
START_S = 240
UNREADABLE = {"invalid_json", "wrong_schema", "truncated"}
GOOD = "The first step expands the square and is right. The second one divides by n, which may be zero.\n### False"
ODD = "Step 1 is fine. The recipe asks for two eggs and a cup of flour. Step 2 divides by zero.\n### False"
LOOP = "Step 1 holds because of the bound. " * 60 + "\n### False"
PROMPT = FluencyPrompt.load()


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """A judge's settings for a server that runs as long as the module's tests."""
    if not MODEL:
        pytest.skip(
            "PV_RL_TEST_JUDGE_MODEL names no model folder; docs/guides/local_judge.md says how to make one"
        )
    if importlib.util.find_spec("openai") is None:
        pytest.skip("transformers serve needs the package openai: pip install 'transformers[serving]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("judge") / "log"
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", MODEL, "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    alone = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as file:
        server = subprocess.Popen(command, env=os.environ | alone, stdout=file, stderr=subprocess.STDOUT)
    try:
        wait_until_healthy(server, f"http://127.0.0.1:{port}/health", log)
        yield {
            "endpoints": [{"url": f"http://127.0.0.1:{port}/v1", "model": MODEL}],
            "response_format": "none",
            "sampling": {"temperature": 0.0, "max_tokens": 60},
            "timeouts": {"first_byte_s": 240, "total_s": 240},
            "deadline_s": 500,
            "retries": {"attempts": 1},
            "limits": {"concurrency": 1},
        }
    finally:
        server.terminate()
        server.wait(30)


def wait_until_healthy(server: subprocess.Popen, url: str, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and server.poll() is None:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    pytest.fail(f"transformers serve did not come up:\n{log.read_text(errors='replace')[-3000:]}")


def written(end: Answer | JudgeFailure) -> str:
    """What the model wrote, whether or not it can be used."""
    assert isinstance(end, Answer) or end.kind in UNREADABLE, end
    return end.text


def test_what_comes_back_is_the_models_own_text_and_its_tokens_are_counted(settings):
    questions = [
        Question(template="fluency", messages=PROMPT.messages(trace), parse=parse_fluency)
        for trace in (GOOD, ODD)
    ]

    async def ask():
        service = JudgeService(ServiceConfig(judge=read_config(settings)))
        try:
            return [await service.ask(one) for one in questions], await service.report(1)
        finally:
            await service.close()

    ends, report = asyncio.run(ask())
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(MODEL)
    for question, end in zip(questions, ends, strict=True):
        messages = [dict(message) for message in question.messages]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        assert end.usage.prompt_tokens == len(prompt["input_ids"])
        own = len(tokenizer(written(end))["input_ids"])
        assert 0 < own <= end.usage.completion_tokens <= 60
    assert report["tokens/sum"] == sum(end.usage.prompt_tokens + end.usage.completion_tokens for end in ends)

    (endpoint,) = settings["endpoints"]
    body = {"model": MODEL, "messages": list(questions[0].messages), **settings["sampling"]}
    again = httpx.post(f"{endpoint['url']}/chat/completions", json=body, timeout=240).json()
    assert again["choices"][0]["message"]["content"] == written(
        ends[0]
    )  # greedy: asked again it says the same


@pytest.mark.parametrize(
    ("policy", "unanswered"),
    [("abstain", (0.0, False)), ("fail_open", (1.0, True)), ("fail_closed", (0.0, True))],
)
def test_every_row_gets_an_outcome_by_answer_rule_or_policy(policy, unanswered, settings, tmp_path):
    folder = str(tmp_path / "ledger")
    options = {"judge": settings, "on_failure": policy, "ledger": folder}
    good, loop = scored([GOOD, LOOP], options)
    row, looped = sorted(read_ledger(folder).to_pylist(), key=lambda one: len(one["trace"]))
    assert (row["trace"], row["requests"]) == (GOOD, 1)
    assert row["judge_text"]
    assert row["prompt_tokens"] > 0
    if row["decision"] == "failed":
        assert row["failure"] in UNREADABLE
        assert (good.score, good.valid) == unanswered
        assert good.metrics["judge_failed"] == 1.0
    else:
        assert row["decided_by"] == "judge"
        assert (good.score, good.valid) == (0.0 if row["decision"] == "vetoed" else 1.0, True)
    assert (loop.score, loop.valid, looped["requests"]) == (0.0, True, 0)  # by a rule: nobody was asked


def scored(traces: list[str], options: dict) -> list[RewardOutput]:
    reward = build_reward("verdict_fluency", options)

    async def main():
        try:
            return [await reward.score(RewardInput(response=trace, label=False)) for trace in traces]
        finally:
            await close_local_services()

    return asyncio.run(main())
