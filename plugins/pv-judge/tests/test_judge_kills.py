"""The judge's actor is killed again and again under several reward workers: no server sees more than the budget."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import ray
from judge_server import JudgeServer, Latency, Script
from judge_server.replies import prompt_of, verdict

from pv_judge import ray_service
from pv_judge.answer import JudgeFailure, Question
from pv_judge.config import read_config
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.service import ServiceConfig
from pv_judge.spend_file import read_spent

pytestmark = pytest.mark.slow

WORKERS = 3
LANES = 4
"""Questions that a worker has under way."""


@pytest.fixture(scope="module", autouse=True)
def in_ray() -> Iterator[None]:
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    yield
    ray_service.forget_services()  # a question to one of them would start Ray again
    ray.shutdown()


def actor_pid() -> int | None:
    """The process of the judge's actor that runs now."""
    for process in psutil.Process().children(recursive=True):
        try:
            if process.name().startswith("ray::_Actor") and process.status() != psutil.STATUS_ZOMBIE:
                return process.pid
        except psutil.NoSuchProcess:
            continue
    return None


def kill_actor(rng: random.Random, server: JudgeServer, before: int | None) -> int:
    """Kill the actor that was started after `before` some time after its first request, or after 3 s without any."""
    deadline, sent = time.monotonic() + 60, len(server.chats())
    while (pid := actor_pid()) in (None, before):
        assert time.monotonic() < deadline, "the actor was not started again"
        time.sleep(0.02)
    deadline = time.monotonic() + 3
    while len(server.chats()) == sent and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(rng.uniform(0.0, 0.5))
    os.kill(pid, signal.SIGKILL)
    return pid


@pytest.mark.parametrize(
    ("kills", "limits"),
    [
        (3, {"calls_per_step": 40, "usd_per_run": 9}),  # in one step, since nobody begins the next
        (3, {"usd_per_run": 0.15}),
        # Twenty kills take minutes; three show the same.
        pytest.param(20, {"calls_per_run": 250, "usd_per_run": 9}, marks=pytest.mark.paths),
        pytest.param(20, {"usd_per_run": 1.2}, marks=pytest.mark.paths),
    ],
)
def test_no_kill_of_the_actor_lets_a_run_pass_its_budget(tmp_path, kills, limits):
    script = Script(latency=Latency(median_s=0.2, sigma=0.5))
    with JudgeServer(script) as server:
        settings = {
            "endpoints": [{"url": server.url, "model": "judge"}],
            "prices": {"judge": {"input": 1.0, "output": 1.0}},  # a request is some 0.0005, at most 0.003
            "budget": limits,
            "limits": {"concurrency": WORKERS * LANES},
        }
        config = ServiceConfig(judge=read_config(settings))
        token = ray_service.run_folder.set(tmp_path)
        ray_service.prepare_service(config)
        ray_service.run_folder.reset(token)
        done = tmp_path / "killed"
        asked = [asker().remote(config, str(done), f"worker {number}") for number in range(WORKERS)]
        rng = random.Random(len(limits))
        pid = None
        for _ in range(kills):
            pid = kill_actor(rng, server, pid)
        done.touch()
        assert min(ray.get(asked, timeout=120)) >= 1
        ray_service.driver_services()[-1].close()
        served = server.chats()
    texts = [prompt_of(one["body"]) for one in served]
    tokens = sum(len(text) // 4 + len(verdict(script, text)) // 4 for text in texts)
    assert len(served) <= min(limits.get("calls_per_run", 10**9), limits.get("calls_per_step", 10**9))
    assert tokens / 1e6 <= limits["usd_per_run"]
    spent = read_spent(tmp_path / "judge" / "spent.json")
    assert spent.calls >= len(served)
    assert spent.tokens >= tokens
    assert spent.usd >= tokens / 1e6 - 1e-9
    assert len(served) > 10 * kills  # or the kills hit nothing


def asker():
    """A reward worker: asks until the budget is used up, and the actor is not killed any more."""

    async def ask_all(config: ServiceConfig, done: str, name: str) -> int:
        service, prompt = ray_service.shared_service(config), FluencyPrompt.load()

        async def lane(number: int) -> int:
            asked = 0
            while True:
                asked += 1
                messages = prompt.messages(f"{name} {number} {asked}")
                answer = await service.ask(Question(template="t", messages=messages, parse=parse_fluency))
                if isinstance(answer, JudgeFailure) and answer.kind == "budget":
                    if Path(done).exists():
                        return asked
                    await asyncio.sleep(0.05)

        return min(await asyncio.gather(*(lane(number) for number in range(LANES))))

    @ray.remote
    def work(config: ServiceConfig, done: str, name: str) -> int:
        return asyncio.run(ask_all(config, done, name))

    return work
