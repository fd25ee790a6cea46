"""The service: one answer for everybody who asks, nothing paid twice, and a reason to halt."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from judge_server import Fault, JudgeServer, Latency, Script

from pv_judge.answer import Answer, JudgeFailure, Question, Usage
from pv_judge.cache import AnswerCache, CachedAnswer
from pv_judge.config import read_config
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.ledger import LedgerRow, read_ledger
from pv_judge.metrics import FailureLog
from pv_judge.ray_service import prepare_service, shared_service
from pv_judge.service import Halt, JudgeService, ServiceConfig
from pv_rl.errors import ConfigError

PROMPT = FluencyPrompt.load()


def question(trace: str = "a trace") -> Question:
    return Question(template=f"fluency@{PROMPT.hash}", messages=PROMPT.messages(trace), parse=parse_fluency)


def config(
    server: JudgeServer, halt: Halt | None = None, ledger: str | None = None, **judge
) -> ServiceConfig:
    endpoint = {"url": server.url, "model": "m"}
    settings = {
        "endpoints": [endpoint],
        "retries": {"attempts": 1},
        "prices": {"m": {"input": 1e6, "output": 0}},
    }
    return ServiceConfig(judge=read_config({**settings, **judge}), ledger=ledger, halt=halt)


def run(settings: ServiceConfig, use, spent: Path | None = None):
    async def main():
        service = JudgeService(settings, spent)
        try:
            return await use(service)
        finally:
            await service.close()

    return asyncio.run(main())


def test_a_question_that_is_being_asked_is_asked_once_and_paid_once():
    async def use(service):
        return await asyncio.gather(*(service.ask(question()) for _ in range(5))), await service.report(1)

    with JudgeServer(Script(latency=Latency(median_s=0.1))) as server:
        answers, report = run(config(server), use)
        assert len(server.chats()) == 1
    assert all(answer.value.fluent for answer in answers)
    assert [answer.requests for answer in answers] == [1, 0, 0, 0, 0]
    assert report["usd/sum"] == pytest.approx(sum(answer.usd for answer in answers))
    assert report["usd/sum"] > 0


def test_an_answer_outlives_the_process_and_a_stale_template_does_not_find_it(tmp_path):
    cached = {"cache": str(tmp_path / "cache.sqlite")}

    async def ask(service):
        return await service.ask(question()), await service.report(1)

    async def ask_anew(service):
        return await service.ask(replace(question(), template="fluency@0"))

    with JudgeServer() as server:
        first, _ = run(config(server, **cached), ask)
        second, report = run(config(server, **cached), ask)
        assert len(server.chats()) == 1
        assert (first.cached, second.cached) == (False, True)
        assert (second.value, second.usd, second.requests) == (first.value, 0.0, 0)
        assert report["cache_hit_rate"] == 1.0
        assert report["requests/sum"] == 0
        third = run(config(server, **cached), ask_anew)
        warmer = run(config(server, **cached, sampling={"temperature": 1, "max_tokens": 400}), ask)[0]
        assert len(server.chats()) == 3
        assert not third.cached
        assert not warmer.cached


def test_a_failure_is_not_remembered():
    async def use(service):
        return [await service.ask(question()) for _ in range(2)]

    with JudgeServer(Script(faults=[Fault(kind="status", requests=[1])])) as server:
        first, second = run(config(server), use)
    assert isinstance(first, JudgeFailure)
    assert first.kind == "server_error"
    assert isinstance(second, Answer)


def test_the_log_speaks_when_the_kind_or_status_changes_and_is_no_flood(caplog):
    now = 0.0
    log = FailureLog(clock=lambda: now)

    def lines(*failures: tuple[str, int | None]) -> list[str]:
        caplog.clear()
        for kind, status in failures:
            log.add(JudgeFailure("the server's words", kind, status=status))
        return caplog.messages

    assert lines(("server_error", 500)) == ["judge failure of kind server_error: the server's words"]
    assert lines(*[("server_error", 500)] * 99) == []
    changes = lines(("server_error", 503), ("authentication", 401), ("server_error", 503))
    assert ["(99 failures since the last such line)" in line for line in changes] == [True, False, False]
    assert len(lines(*[("timeout", None), ("connect", None)] * 50)) == 6  # ten in the first minute
    now = 61
    assert lines(("connect", None)) == []  # that is what it said last
    now = 601
    assert "connect (95 failures since the last such line)" in lines(("connect", None))[0]


def test_an_asker_that_is_cancelled_takes_nothing_with_it():
    async def use(service):
        asker = asyncio.ensure_future(service.ask(question()))
        await asyncio.sleep(0.05)
        asker.cancel()
        return await service.ask(question())

    with JudgeServer(Script(latency=Latency(median_s=0.3))) as server:
        answer = run(config(server), use)
        assert len(server.chats()) == 1
    assert answer.value.fluent


def test_rows_are_written_down_and_a_report_begins_the_next_step(tmp_path):
    row = LedgerRow(uid="a", session=2, trace="t", decision="fluent", decided_by="judge", score=1.0)

    async def use(service):
        end = row.time.timestamp()
        await service.record(row, end - 3)
        await service.ask(question("one"))
        first = await service.report(2, [("a", 2)], (end - 10, end - 1))
        refused = await service.ask(question("two")), await service.ask(question("three"))
        return first, refused

    with JudgeServer() as server:
        budget = {"calls_per_step": 1}
        first, (second, third) = run(config(server, ledger=str(tmp_path / "ledger"), budget=budget), use)
    assert first["exposed_wait_s/sum"] == pytest.approx(2.0)
    assert isinstance(second, Answer)
    assert isinstance(third, JudgeFailure)
    assert third.kind == "budget"
    assert read_ledger(tmp_path / "ledger").column("trace").to_pylist() == ["t"]


def test_a_run_that_goes_on_has_spent_what_it_had_spent_before(tmp_path):
    async def use(service):
        return await service.ask(question()), await service.ask(question("another"))

    spent = tmp_path / "judge" / "spent.json"
    with JudgeServer() as server:
        settings = config(server, budget={"calls_per_run": 1})
        first, refused = run(settings, use, spent)
        assert isinstance(first, Answer)
        assert isinstance(refused, JudgeFailure)
        again = run(settings, use, spent)
        assert [answer.kind for answer in again] == ["budget", "budget"]
        assert len(server.chats()) == 1


@pytest.mark.parametrize("count", [10**8, -3, True, 7.5, "many"])
def test_an_absurd_usage_is_booked_at_what_the_request_can_take_and_counted(count):
    async def use(service):
        answers = [await service.ask(question(trace)) for trace in ("one", "two")]
        return answers, await service.report(1)

    settings = {
        "prices": {"m": {"input": 0, "output": 1e6}},
        "budget": {"usd_per_run": 1000},
        "limits": {"tokens_per_minute": 10_000},  # which an absurd count would use up for a minute
        "deadline_s": 5,
    }
    with JudgeServer(Script(usage={"prompt_tokens": 5, "completion_tokens": count})) as server:
        answers, report = run(config(server, **settings), use)
    for answer in answers:
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (5, 400)  # sampling.max_tokens
        assert answer.usd == 400.0
    assert report["usd_run/max"] == 800.0
    assert report["usage_capped/sum"] == 2


@pytest.mark.parametrize("priced", [True, False])
def test_a_model_without_a_price_is_warned_of_and_no_dollars_are_reported(priced, caplog):
    async def use(service):
        await service.ask(question())
        return await service.report(1)

    endpoints = [{"url": "http://127.0.0.1:9/v1", "model": model} for model in ("m", "free")]
    prices = {model: {"input": 1, "output": 1} for model in (("m", "free") if priced else ("m",))}
    with JudgeServer() as server:
        endpoints[0]["url"] = server.url
        report = run(config(server, endpoints=endpoints, prices=prices), use)
    dollars = {"usd/sum", "usd_run/max"}
    assert dollars & report.keys() == (dollars if priced else set())
    assert ("judge.prices has no price for free, so no dollars" in caplog.text) is not priced


def test_it_says_halt_when_too_many_of_a_whole_window_failed():
    row = LedgerRow(trace="t", decision="failed", decided_by="policy", score=0.0)

    async def use(service):
        reasons = []
        for failed in (True, True, None, True, False, False, False):
            await service.record(row, failed=failed)
            reasons.append(await service.halt_reason())
        return reasons

    with JudgeServer() as server:
        reasons = run(config(server, halt=Halt(failure_rate=0.75, window=4)), use)
    assert [bool(reason) for reason in reasons] == [False, False, False, False, True, False, False]
    assert reasons[4] == "3 of the last 4 judged rows got no answer, and the policy is halt at 75%"


def test_a_disk_that_fails_does_not_end_the_run(tmp_path, monkeypatch):
    row = LedgerRow(trace="t", decision="fluent", decided_by="rules", score=1.0)

    async def use(service):
        def full(*_):
            raise OSError("No space left on device")

        monkeypatch.setattr(service.ledger, "append", full)
        monkeypatch.setattr(service.cache._disk, "put", full)
        await service.record(row)
        answer = await service.ask(question())
        return answer, await service.report(1)

    with JudgeServer() as server:
        settings = config(server, ledger=str(tmp_path / "ledger"), cache=str(tmp_path / "cache.sqlite"))
        answer, report = run(settings, use)
    assert answer.value.fluent
    assert report["disk_errors/sum"] == 2


@pytest.mark.parametrize("what", ["damaged", "of another parser"])
def test_an_answer_that_cannot_be_used_is_asked_for_again_and_kept(tmp_path, what):
    async def ask_both(service):
        answers = [await service.ask(question(trace)) for trace in ("one", "two")]
        return [answer.cached for answer in answers], await service.report(1)

    with JudgeServer() as server:
        settings = config(server, cache=str(tmp_path / "cache.sqlite"))
        assert run(settings, ask_both)[0] == [False, False]
        with sqlite3.connect(tmp_path / "cache.sqlite") as db:
            (key,) = db.execute("SELECT key FROM answers WHERE rowid = 1").fetchone()
            if what == "damaged":
                db.execute("UPDATE answers SET text = 'no' WHERE rowid = 1")
        if what == "of another parser":
            cache = AnswerCache(tmp_path / "cache.sqlite")
            cache.drop(key)
            cache.put(key, CachedAnswer(text='{"fluent": fals', usage=Usage(), model="judge"))
            cache.close()
        cached, report = run(settings, ask_both)
        assert cached == [False, True]
        assert report["disk_errors/sum"] == (what == "damaged")
        assert run(settings, ask_both)[0] == [True, True]
        assert len(server.chats()) == 3


def test_outside_ray_a_process_has_one_service_for_the_same_settings():
    async def main(settings):
        same = shared_service(settings) is shared_service(replace(settings))
        other = shared_service(settings) is shared_service(replace(settings, halt=Halt()))
        return same, other

    with JudgeServer() as server:
        assert asyncio.run(main(config(server))) == (True, False)


def test_a_missing_key_is_said_before_anything_is_asked(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with JudgeServer() as server:
        endpoints = [{"url": server.url, "model": "m", "api_key_env": "NO_SUCH_KEY"}]
        with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
            prepare_service(config(server, endpoints=endpoints))
