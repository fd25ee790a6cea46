"""The client against a real server on loopback that fails in every way we know."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import pickle
import subprocess
import sys
import time
from urllib.parse import quote

import pytest
from judge_server import Fault, JudgeServer, Latency, Script, replies
from places import SUPPORT

from pv_judge.answer import JudgeFailure, Usage
from pv_judge.client import JudgeClient
from pv_judge.config import Breaker, Endpoint, Hedging, JudgeConfig, Limits, Retries, Timeouts
from pv_judge.fluency import parse_fluency
from pv_judge.http import retry_after_s
from pv_judge.keys import Key
from pv_rl.errors import ConfigError

KEY = "sk-planted-0123456789abcdef"
IMPATIENT = Timeouts(first_byte_s=0.2, total_s=0.4)
PERSISTENT = Retries(attempts=20, backoff_s=0.01)
SETTINGS = {
    "retries": Retries(attempts=3, backoff_s=0.01),
    "breaker": Breaker(probe_after_s=0.1),
    "deadline_s": 60,
}


def config(*servers: JudgeServer, **settings) -> JudgeConfig:
    endpoints = tuple(Endpoint(url=server.url, model="judge") for server in servers)
    return JudgeConfig(**{"endpoints": endpoints} | SETTINGS | settings)


def ask(settings: JudgeConfig, *texts: str, parse=parse_fluency, **more) -> list:
    """Answers and failures of questions that are asked at the same time, by one client."""

    async def all_of_them() -> list:
        client = JudgeClient(settings)
        questions = [client.ask([{"role": "user", "content": text}], parse, **more) for text in texts]
        results = await asyncio.gather(*questions, return_exceptions=True)
        await client.aclose()
        await no_task_is_left()
        return results

    return asyncio.run(all_of_them())


async def until(condition) -> None:
    """Wait for the server's thread to see something."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be")


async def no_task_is_left() -> None:
    for _ in range(10):  # asyncio closes generators that were left in the middle by tasks of its own
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def failure_of(settings: JudgeConfig, **more) -> JudgeFailure:
    (failure,) = ask(settings, "a trace", **more)
    assert isinstance(failure, JudgeFailure)
    return failure


def test_a_question_reaches_the_server_as_it_was_configured(monkeypatch):
    monkeypatch.setenv("TEST_JUDGE_KEY", KEY)
    with JudgeServer(Script(key=KEY, cached_tokens=1)) as server:
        endpoint = Endpoint(
            url=server.url, model="judge-model", api_key_env="TEST_JUDGE_KEY", extra_body={"top_k": 1}
        )
        (answer,) = ask(config(endpoints=(endpoint,)), "a trace with an ANOMALY")
        (sent,) = server.chats()
    assert (answer.value.fluent, answer.value.anomalies[0].kind) == (False, "local_loop")
    assert answer.usage == Usage(prompt_tokens=5, completion_tokens=24, cached_tokens=1)
    assert (answer.model, answer.endpoint) == ("judge-model", server.url)
    assert sent["key"] is True
    assert sent["body"] == {
        "model": "judge-model",
        "messages": [{"role": "user", "content": "a trace with an ANOMALY"}],
        "temperature": 0.0,
        "max_tokens": 400,
        "response_format": {"type": "json_object"},
        "top_k": 1,
    }


def test_a_server_that_does_not_know_response_format_is_not_sent_it():
    with JudgeServer() as server:
        ask(config(server, response_format="none"), "a trace")
        assert "response_format" not in server.chats()[0]["body"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(kind="status", status=429, retry_after=0.05), "rate_limited"),
        (Fault(kind="status", status=500), "server_error"),
        (Fault(kind="status", status=503, retry_after=0.05), "server_error"),
        (Fault(kind="status", status=408), "timeout"),
        (Fault(kind="reset"), "reset"),
        (Fault(kind="reset_at_once"), "reset"),
        (Fault(kind="hang"), "timeout"),
        (Fault(kind="drip"), "timeout"),
        (Fault(kind="not_http"), "server_error"),
        (Fault(kind="invalid_json"), "bad_response"),
        (Fault(kind="wrong_schema"), "bad_response"),
        (Fault(kind="empty_choices"), "bad_response"),
        (Fault(kind="content", text="I think it is fluent."), "invalid_json"),
        (Fault(kind="content", text='{"fluent": "yes"}'), "wrong_schema"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_a_fault_that_may_pass_is_asked_again_and_one_that_stays_is_named(fault, kind):
    slow = fault.kind in ("hang", "drip")
    timeouts = IMPATIENT if slow else Timeouts()
    with JudgeServer(Script(faults=[Fault(**vars(fault) | {"requests": [1]})])) as server:
        (answer,) = ask(config(server, timeouts=timeouts, retries=PERSISTENT), "a trace")
        assert answer.value.fluent
        assert answer.requests == 2 or (slow and answer.requests > 2)  # of a busy machine
    with JudgeServer(Script(faults=[fault])) as server:
        failure = failure_of(config(server, timeouts=timeouts))
        assert (failure.kind, failure.requests) == (kind, 3)
        assert server.url in str(failure)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(kind="refusal"), "refusal"),
        (Fault(kind="truncated"), "truncated"),
        (Fault(kind="huge"), "too_large"),
        (Fault(kind="no_content"), "no_text"),
        (Fault(kind="unauthorized"), "authentication"),
        (Fault(kind="status", status=404), "client_error"),
        (Fault(kind="status", status=302), "client_error"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_a_fault_that_stays_is_not_asked_again(fault, kind):
    with JudgeServer(Script(faults=[fault])) as server:
        failure = failure_of(config(server))
        assert (failure.kind, failure.requests, len(server.chats())) == (kind, 1, 1)


@pytest.mark.parametrize(
    ("fault", "usage"),
    [
        (Fault(kind="refusal"), Usage(prompt_tokens=1)),  # as the server says: 7 characters
        (Fault(kind="truncated"), Usage(prompt_tokens=1, completion_tokens=3)),
        (Fault(kind="status", status=400), Usage()),
        (Fault(kind="huge"), Usage(prompt_tokens=40)),  # not said: a quarter of the request's bytes
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_what_is_billed_is_counted_though_it_cannot_be_used(fault, usage):
    with JudgeServer(Script(faults=[fault])) as server:
        failure = failure_of(
            config(server, response_format="none", sampling={"temperature": 0.0, "max_tokens": 400})
        )
    assert failure.usage.completion_tokens == usage.completion_tokens
    assert failure.usage.prompt_tokens == pytest.approx(
        usage.prompt_tokens, abs=15 if fault.kind == "huge" else 0
    )


def test_tokens_are_estimated_where_the_server_counts_none():
    with JudgeServer(Script(usage=False)) as server:
        (answer,) = ask(config(server), "a trace" * 1000)
    assert 1750 < answer.usage.prompt_tokens < 1850
    assert answer.usage.completion_tokens == len(answer.text) // 4 + 1


def test_a_drip_does_not_outlive_the_total_timeout():
    with JudgeServer(Script(faults=[Fault(kind="drip", interval_s=0.02)])) as server:
        settings = config(
            server, retries=Retries(attempts=1), timeouts=Timeouts(first_byte_s=30, total_s=0.3)
        )
        began = time.monotonic()
        assert failure_of(settings).kind == "timeout"
    assert time.monotonic() - began < 10


def test_the_deadline_ends_what_is_in_flight_and_says_what_had_failed():
    faults = [Fault(kind="status", requests=[1]), Fault(kind="hang")]
    with JudgeServer(Script(faults=faults)) as server:
        failure = failure_of(config(server, deadline_s=0.5))
    assert (failure.kind, failure.requests) == ("deadline", 2)
    assert "HTTP 500" in str(failure)


def test_an_answer_without_end_is_left_when_it_is_too_large():
    with JudgeServer(Script(faults=[Fault(kind="endless")])) as server:
        settings = config(server, max_answer_bytes=1000, timeouts=Timeouts(total_s=60))
        assert failure_of(settings).kind == "too_large"


def test_a_server_that_is_not_there_is_a_failure_to_connect():
    with JudgeServer() as server:
        pass
    failure = failure_of(config(server))
    assert (failure.kind, failure.requests, failure.usage) == ("connect", 3, Usage())
    assert "Connect call failed" in str(failure)  # what the system said


def test_the_next_server_answers_while_the_first_is_down():
    with JudgeServer() as down, JudgeServer() as up:
        down.go_down()
        answers = ask(config(down, up, breaker=Breaker(failures=3, probe_after_s=60)), *["a trace"] * 50)
    assert {answer.endpoint for answer in answers} == {up.url}


def test_questions_outlast_an_outage():
    with JudgeServer(Script(outages=[(0.02, 0.7)], latency=Latency(median_s=0.01))) as server:
        settings = config(server, limits=Limits(concurrency=8), retries=PERSISTENT)
        answers = ask(settings, *["a trace"] * 100)
        assert all(answer.value.fluent for answer in answers)
        assert server.chats()[-1]["t"] >= 0.7


def test_a_storm_of_429_is_ridden_out():
    storm = Fault(kind="status", status=429, retry_after=0.1, to_s=0.5)
    with JudgeServer(Script(faults=[storm])) as server:
        answers = ask(config(server, retries=PERSISTENT), *["a trace"] * 60)
        assert all(answer.value.fluent for answer in answers)
        refused = [one for one in server.chats() if one["fault"]]
    assert len(refused) < 60 + 5 * 32  # after the first, no more than half at a time, each tenth of a second


@pytest.mark.parametrize("hedging", [Hedging(), Hedging(after_s=0.1)])
def test_in_a_mixture_of_all_faults_every_question_is_answered_or_says_why_not(hedging):
    faults = [
        Fault(kind="status", status=429, retry_after=0.02, probability=0.05),
        Fault(kind="status", status=500, probability=0.05),
        Fault(kind="reset", probability=0.05),
        Fault(kind="reset_at_once", probability=0.05),
        Fault(kind="hang", probability=0.02),
        Fault(kind="drip", probability=0.02),
        Fault(kind="invalid_json", probability=0.05),
        Fault(kind="empty_choices", probability=0.05),
        Fault(kind="content", text="Yes.", probability=0.05),
        Fault(kind="refusal", probability=0.03),
        Fault(kind="huge", size=2_000_000, probability=0.02),
    ]
    texts = [f"trace {number} {'ANOMALY' if number % 3 == 0 else ''}" for number in range(120)]
    with JudgeServer(Script(faults=faults, seed=1)) as server:
        settings = config(
            server, retries=PERSISTENT, hedging=hedging, timeouts=Timeouts(first_byte_s=0.3, total_s=0.6)
        )
        results = ask(settings, *texts)
        refused = [one for one in results if isinstance(one, JudgeFailure)]
        assert {one.kind for one in refused} <= {"refusal", "too_large"}
        assert 0 < len(refused) < 30
        for number, one in enumerate(results):
            if not isinstance(one, JudgeFailure):
                assert one.value.fluent is (number % 3 != 0)  # everybody has the answer to his own question
        assert sum(one.requests for one in results) >= len(server.chats())


STRAY = json.dumps(replies.completion(Script(), "", replies.verdict(Script(), "ANOMALY")))
CHUNKED = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{len(STRAY):x}\r\n{STRAY}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="twice", interval_s=0),
        Fault(kind="twice", interval_s=0.02),
        Fault(kind="raw", text=CHUNKED + CHUNKED, contains="ANOMALY"),
        Fault(kind="raw", text="HTTP/1.1 103 Early Hints\r\n\r\n" + CHUNKED + CHUNKED, contains="ANOMALY"),
    ],
    ids=["in one write", "late", "chunked", "after a hint"],
)
def test_bytes_that_nobody_asked_for_are_no_answer_to_the_next_question(fault):
    texts = [f"trace {number} {'ANOMALY' if number % 2 else ''}" for number in range(10)]
    with JudgeServer(Script(faults=[fault])) as server:
        answers = ask(config(server, limits=Limits(concurrency=1)), *texts)
        assert len(server.chats()) == 10
    assert [answer.value.fluent for answer in answers] == [number % 2 == 0 for number in range(10)]


def test_a_model_that_only_thinks_is_asked_once_a_row_and_is_not_down():
    thoughts = {"role": "assistant", "content": None, "reasoning_content": "It is fluent."}
    body = json.dumps({"choices": [{"index": 0, "message": thoughts, "finish_reason": "stop"}]})
    fault = Fault(kind="raw", text=f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    with JudgeServer(Script(faults=[fault])) as server:
        settings = config(server, retries=PERSISTENT, limits=Limits(concurrency=4))
        failures = ask(settings, *(f"trace {number}" for number in range(20)))
        assert {(one.kind, one.requests) for one in failures} == {("no_text", 1)}
        assert "reasoning_content" in str(failures[0])
        assert len(server.chats()) == 20


def test_the_server_never_sees_more_requests_at_a_time_than_the_limit():
    with JudgeServer(Script(latency=Latency(median_s=0.02))) as server:
        ask(config(server, limits=Limits(concurrency=5)), *["a trace"] * 50)
        assert max(one["in_flight"] for one in server.chats()) == 5


def test_questions_that_are_cancelled_leave_no_connection_and_no_place():
    async def check(server: JudgeServer) -> None:
        client = JudgeClient(config(server, limits=Limits(concurrency=16)))
        hung = [asyncio.ensure_future(client.ask([{"role": "user", "content": "hang"}])) for _ in range(40)]
        await until(lambda: len(server.chats()) == 16)
        for task in hung:
            task.cancel()
        await asyncio.gather(*hung, return_exceptions=True)
        assert all(task.cancelled() for task in hung)
        await until(lambda: not server.connections)
        answers = await asyncio.gather(*(client.ask([{"role": "user", "content": "go"}]) for _ in range(40)))
        assert len(answers) == 40
        await client.aclose()
        await until(lambda: not server.connections)
        await no_task_is_left()

    with JudgeServer(Script(faults=[Fault(kind="hang", contains="hang")])) as server:
        asyncio.run(check(server))


def test_a_wrong_key_costs_no_row_its_deadline_and_names_the_variable(monkeypatch):
    monkeypatch.setenv("TEST_JUDGE_KEY", KEY)
    with JudgeServer(Script(key="another")) as server:
        endpoint = Endpoint(url=server.url, model="judge", api_key_env="TEST_JUDGE_KEY")
        settings = config(
            endpoints=(endpoint,), limits=Limits(concurrency=4), breaker=Breaker(probe_after_s=60)
        )
        failures = ask(settings, *["a trace"] * 40)
        assert len(server.chats()) <= 5
    assert {(one.kind, one.status) for one in failures} == {("authentication", 401)}
    assert all("that key is wrong" in str(one) for one in failures)
    assert all("read from the environment variable TEST_JUDGE_KEY" in str(one) for one in failures)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"ALL_PROXY": "socks5://user:hunter2@127.0.0.1:1"}, r"ALL_PROXY.*socksio"),
        ({"ALL_PROXY": "foo://user:hunter2@127.0.0.1:1"}, r"ALL_PROXY.*ValueError"),
        ({"http_proxy": "http://user:hunter2/hunter2@127.0.0.1:1"}, "http_proxy.*InvalidURL"),
        ({"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "::1/128"}, "NO_PROXY"),
        ({"SSL_CERT_FILE": "/nowhere/cert.pem"}, "SSL_CERT_FILE"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_environment_that_the_transport_cannot_use_is_one_line_of_a_config_error(
    environment, said, monkeypatch
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=said) as error:
        JudgeClient(config(endpoints=(Endpoint(url="http://127.0.0.1:1", model="judge"),)))
    assert "\n" not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_missing_package_is_not_called_a_fault_of_the_environment(monkeypatch):
    monkeypatch.setitem(sys.modules, "h2", None)
    with pytest.raises(
        ConfigError, match=r"httpx cannot be used: .*'h2' package is not installed.*httpx\[http2\]"
    ):
        JudgeClient(config(endpoints=(Endpoint(url="http://127.0.0.1:1", model="judge"),)))


def test_whatever_the_transport_raises_is_a_failure_of_the_row(monkeypatch):
    async def check() -> list:
        client = JudgeClient(config(endpoints=(Endpoint(url="http://127.0.0.1:1", model="judge"),)))
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")  # while the run goes on
        asked = (client.ask([{"role": "user", "content": "a trace"}]) for _ in range(2))
        return await asyncio.gather(*asked, return_exceptions=True)

    failures = asyncio.run(check())
    assert all(isinstance(one, JudgeFailure) for one in failures)
    assert any("ImportError: Using SOCKS proxy" in str(one) for one in failures)


ECHO = f"HTTP/1.1 200 {KEY}\r\nX-Echo: {KEY}\r\nContent-Length: 2\r\n\r\n{{}}"
ESCAPED = "".join(f"\\u{ord(one):04x}" if one in "-0" else one for one in KEY)


@pytest.mark.parametrize(
    "text",
    [
        f"bad key {ESCAPED}",
        f"bad key {ESCAPED.replace(chr(92), chr(92) * 2)}",
        f"bad key {KEY.replace('-', '%2D')}",
        f"bad key {KEY.replace('-', '%252d')}",
        f"bad key {KEY.replace('-', '&#45;')}",
        f"bad key {KEY[:12]}\r\n  {KEY[12:]}",
        f"bad key {KEY[:12]}\u200b{KEY[12:]}",
        f"bad key {KEY[:12]}\\n{KEY[12:]}",
        json.dumps(["bad key", KEY[:12], KEY[12:]]),
        f"bad header {base64.b64encode(f'Bearer {KEY}'.encode()).decode()}",
        f"bad header {KEY.encode().hex()}",
        "bad key " + "x" * (16_384 - 8 - 12) + KEY,  # cut within the key
        (KEY + " ") * 1000,
    ],
    ids=lambda text: text[:40],
)
def test_a_key_that_a_server_echoes_in_another_form_is_not_shown(text, monkeypatch):
    monkeypatch.setenv("TEST_JUDGE_KEY", KEY)
    key = Key.of(Endpoint(url="http://127.0.0.1:1", model="judge", api_key_env="TEST_JUDGE_KEY"))
    for sent in (text, text[:16_384]):
        shown = key.blot(sent)
        assert "***" in shown
        assert "planted" not in _plain(shown)
    assert key.blot("bad key sk-plan") == "bad key sk-plan"


@pytest.mark.parametrize("secret", ["[^a]+$\\d{3}", "p%41ss/w0rd=="])
@pytest.mark.parametrize(
    "encode",
    [
        str,
        json.dumps,
        lambda key: quote(key, safe=""),
        lambda key: "".join(f"%{ord(one):02X}" for one in key),
        lambda key: "".join(f"\\x{ord(one):02x}" for one in key),
        lambda key: "".join(f"&#{ord(one)};" for one in key),
    ],
    ids=["plain", "json", "quoted", "url", "python", "html"],
)
def test_a_key_of_signs_or_with_escapes_in_it_is_not_shown_in_another_form(secret, encode):
    assert "***" in Key(secret).blot(f"Incorrect API key: {encode(secret)} given")


def _plain(text: str) -> str:
    """What a reader can make of it."""
    for code in ("%252d", "%2D", "&#45;"):
        text = text.replace(code, "-")
    return text


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="raw", text=ECHO),
        Fault(kind="raw", text=ECHO.replace("200", "401")),
        Fault(kind="unauthorized"),
        Fault(kind="status", status=400, text=f"bad key {ESCAPED}"),
        Fault(kind="status", status=500, text=f"bad key {KEY} in {'x' * 250} {KEY}"),
        Fault(kind="content", text=f"your key is {KEY}"),
        Fault(kind="refusal", text=f"I will not use {KEY}"),
        Fault(kind="truncated", text=f"{KEY}, {KEY}, {KEY}"),
    ],
    ids=lambda fault: fault.kind,
)
def test_the_key_is_in_no_error_answer_repr_or_log(fault, monkeypatch, caplog):
    for name in (None, "httpx", "httpcore.http11"):  # as a user sets who looks for a fault
        caplog.set_level(logging.DEBUG, name)
    monkeypatch.setenv("TEST_JUDGE_KEY", KEY)
    with JudgeServer(Script(faults=[fault])) as server:
        endpoint = Endpoint(url=server.url, model="judge", api_key_env="TEST_JUDGE_KEY")
        settings = config(endpoints=(endpoint,))
        client = JudgeClient(settings)
        (failure,) = ask(settings, "a trace")
    route = client.router.routes[0]
    shown = [str(failure), repr(failure), failure.text, repr(pickle.dumps(failure)), caplog.text]
    shown += [repr(client), repr(route), repr(route.client), repr(vars(route.client)), repr(settings)]
    assert not [one for one in shown if "planted" in one]
    assert "***" in str(failure) + failure.text or fault.text.startswith("HTTP/1.1")


def test_a_name_that_may_be_a_key_is_not_shown_either():
    endpoint = Endpoint(url="http://127.0.0.1:1", model="judge", api_key_env="correcthorsebattery")
    with pytest.raises(ConfigError, match="api_key_env") as error:
        JudgeClient(config(endpoints=(endpoint,)))
    assert "horse" not in str(error.value)


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "schlüssel"])
def test_a_key_that_is_missing_or_none_is_said_without_showing_it(value, monkeypatch):
    monkeypatch.delenv("TEST_JUDGE_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("TEST_JUDGE_KEY", value)
    endpoint = Endpoint(url="http://127.0.0.1:1", model="judge", api_key_env="TEST_JUDGE_KEY")
    with pytest.raises(ConfigError, match="TEST_JUDGE_KEY") as error:
        JudgeClient(config(endpoints=(endpoint,)))
    assert not (value or "").strip() or value not in str(error.value)


def test_an_address_that_only_a_trainer_knows_is_said_to_be_one():
    with pytest.raises(ConfigError, match="router"):
        JudgeClient(config(endpoints=(Endpoint(url="router", model="judge"),)))


def test_retry_after_is_seconds_or_a_date_and_not_believed_without_bounds():
    now = 1_445_412_470.0  # Wed, 21 Oct 2015 07:27:50 GMT
    for value, seconds in [
        (None, None),
        ("7", 7),
        (" 0.5 ", 0.5),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 10),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),
        ("99999999", 300),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 300),
        ("-5", None),
        ("nan", None),
        ("soon", None),
        ("9" * 5000, None),
        ("Wed, 99 Oct 2015 99:28:00 GMT", None),
    ]:
        assert retry_after_s(value, now) == seconds, value


def test_the_server_runs_as_a_process_too(tmp_path):
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    script.write_text(
        json.dumps({"faults": [{"kind": "status", "status": 503, "requests": [1]}], "marker": "XX"})
    )
    program = SUPPORT / "judge_server" / "server.py"
    command = [sys.executable, str(program), "--script", str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            endpoint = Endpoint(url=process.stdout.readline().strip(), model="judge")
            (answer,) = ask(config(endpoints=(endpoint,)), "a trace XX")
        finally:
            process.terminate()
    assert not answer.value.fluent
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(one["number"], one["fault"]) for one in entries] == [(1, "status"), (2, None)]
    assert entries[0]["body"]["messages"] == [{"role": "user", "content": "a trace XX"}]


def test_the_same_seed_draws_the_same_faults_and_latencies():
    script = Script(
        faults=[Fault(kind="hang", probability=0.3)], latency=Latency(median_s=2, sigma=0.5), seed=4
    )
    hit = [script.fault(number, 0.0, "") is not None for number in range(1, 2001)]
    assert hit == [script.fault(number, 0.0, "") is not None for number in range(1, 2001)]
    assert 0.26 < sum(hit) / 2000 < 0.34
    seconds = sorted(script.latency_s(number) for number in range(1, 2001))
    assert 1.9 < seconds[1000] < 2.1  # the median
    assert 3.0 < seconds[1682] / seconds[1000] * 2 < 3.6  # one sigma up: 2 x e^0.5 = 3.3
