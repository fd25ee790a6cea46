"""A judge's actor whose event loop hangs, in a real Ray cluster: it is restarted, or the run ends with the reason."""

from __future__ import annotations

import asyncio
import functools
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from judge_server import Fault, JudgeServer, Script

from pv_judge import ray_service, watchdog
from pv_judge.answer import Answer, JudgeFailure, Question
from pv_judge.config import read_config
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.service import ServiceConfig
from pv_judge.verl_hooks import halt_reason
from pv_rl.errors import SetupError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'pv-rl[verl]'")

pytestmark = pytest.mark.slow

PROMPT = FluencyPrompt.load()
EXPONENTIAL = functools.partial(re.fullmatch, r"(a|aa)+b")
"""A parser that never comes back from 60 times `a`, and holds the interpreter meanwhile."""


@pytest.fixture(scope="module")
def ray_cluster():
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def cluster(ray_cluster, monkeypatch):
    """A cluster without a judge in it, and a watchdog that is quick."""
    monkeypatch.setattr(watchdog, "EVERY_S", 0.2)
    monkeypatch.setattr(watchdog, "SILENT_S", 2.0)
    yield
    ray_service.forget_services()


def prepared(server: JudgeServer) -> ServiceConfig:
    settings = {"endpoints": [{"url": server.url, "model": "m"}], "deadline_s": 200}
    config = ServiceConfig(judge=read_config(settings))
    ray_service.prepare_service(config)
    return config


def question(trace: str) -> Question:
    return Question(template=PROMPT.template, messages=PROMPT.messages(trace), parse=parse_fluency)


def test_an_actor_that_hangs_in_a_parser_is_restarted_and_the_other_questions_are_answered(cluster):
    async def ask(config):
        service = ray_service.shared_service(config)
        poison = asyncio.ensure_future(service.ask(replace(question("POISON"), parse=EXPONENTIAL)))
        await asyncio.sleep(1)
        others = await asyncio.gather(*(service.ask(question(f"trace {n}")) for n in range(5)))
        return others, await poison

    poison = Fault(kind="content", contains="POISON", text="a" * 60)
    with JudgeServer(Script(faults=[poison])) as server:
        config = prepared(server)
        others, poisoned = asyncio.run(ask(config))
    assert all(isinstance(answer, Answer) and answer.value.fluent for answer in others)
    assert isinstance(poisoned, JudgeFailure)
    assert poisoned.kind == "invalid_json"
    (service,) = ray_service.driver_services()
    assert service.report(1, [], None)["actor_restarts/max"] == 1
    assert halt_reason() is None


def test_an_actor_with_more_open_questions_than_a_step_has_rows_still_answers_its_watchdog(cluster):
    """Ray queues calls above max_concurrency, and a ping behind them looks like a hang."""
    with JudgeServer(Script(faults=[Fault(kind="hang")])) as server:
        actor = ray.get_actor(ray_service.actor_name(prepared(server)))
        ray_service.driver_services()[0].watchdog.stop()
        asked = [actor.ask.remote(question(f"trace {n}")) for n in range(10_200)]
        ray.get(actor.ping.remote(), timeout=180)  # questions end after 200 s
        assert ray.wait(asked, timeout=0)[0] == []
        ray.kill(actor)


def test_an_actor_that_cannot_start_is_an_error_of_one_line(cluster, tmp_path):
    (tmp_path / "cache.sqlite").write_text("no database")
    settings = {
        "endpoints": [{"url": "http://127.0.0.1:9", "model": "m"}],
        "cache": f"{tmp_path}/cache.sqlite",
    }
    with pytest.raises(SetupError, match=r"did not start: .*is not a cache") as caught:
        ray_service.prepare_service(ServiceConfig(judge=read_config(settings)))
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_an_actor_that_hangs_again_and_again_ends_the_run_with_the_reason(cluster, monkeypatch, caplog):
    monkeypatch.setattr(watchdog, "RESTARTS", 0)
    with JudgeServer(Script(faults=[Fault(kind="content", text="a" * 60)])) as server:
        actor = ray.get_actor(ray_service.actor_name(prepared(server)))
        actor.ask.remote(replace(question("any"), parse=EXPONENTIAL))
        deadline = time.monotonic() + 60
        while halt_reason() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert halt_reason() == "the judge's actor stopped answering again after 0 restarts within 3600 s"
        ray.kill(actor)


def test_a_driver_that_was_paused_does_not_restart_its_actor():
    code = """
import asyncio, os, sys, time
import ray
from pv_judge import watchdog
watchdog.EVERY_S, watchdog.SILENT_S = 0.01, 1.0
@ray.remote
class Actor:
    async def ping(self):
        await asyncio.sleep(0.3)
ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
actor = Actor.options(max_restarts=-1, num_cpus=0).remote()
ray.get(actor.ping.remote())
watch = watchdog.Watchdog(actor)
print("watching", flush=True)
sys.stdin.read()
print(watch.restarts, flush=True)
watch.stop()
ray.shutdown()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as driver:
        while driver.stdout.readline() not in ("watching\n", ""):
            pass
        for _ in range(3):
            time.sleep(0.7)
            driver.send_signal(signal.SIGSTOP)
            time.sleep(2)
            driver.send_signal(signal.SIGCONT)
        time.sleep(1)
        assert driver.communicate()[0] == "0\n"
