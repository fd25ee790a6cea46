"""The client against a server that speaks HTTP/2."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
from pathlib import Path

import pytest
from judge_server.http2 import serve_http2

from pv_judge.client import JudgeClient
from pv_judge.config import Endpoint, JudgeConfig, Limits, Retries, Timeouts

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
TEXT = "a trace " * 4000  # several frames


def ask(folder: Path, monkeypatch: pytest.MonkeyPatch, choose, number: int) -> tuple[list, int]:
    """Answers, and how many connections it took."""

    async def all_of_them() -> tuple[list, int]:
        server, url, connections = await serve_http2(folder, choose)
        monkeypatch.setenv("SSL_CERT_FILE", str(folder / "cert.pem"))
        monkeypatch.setenv("TEST_JUDGE_KEY", "sk-planted-0123456789abcdef")
        config = JudgeConfig(
            endpoints=(Endpoint(url=url, model="judge", api_key_env="TEST_JUDGE_KEY"),),
            limits=Limits(concurrency=16),
            timeouts=Timeouts(connect_s=5, first_byte_s=0.5, total_s=5),
            retries=Retries(attempts=10, backoff_s=0.01),
            deadline_s=30,
        )
        client = JudgeClient(config)
        questions = [
            client.ask([{"role": "user", "content": f"{one} {'ANOMALY' * (one % 2)} {TEXT}"}])
            for one in range(number)
        ]
        answers = await asyncio.gather(*questions)
        await client.aclose()
        for _ in range(1000):
            if all(one.closed for one in connections):
                break
            await asyncio.sleep(0.005)
        else:
            raise AssertionError("connections are left open")
        server.close()
        return answers, len(connections)

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("other_manager", [False, True])
def test_requests_share_connections_and_the_key_stays_out_of_the_log(
    other_manager, tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.DEBUG)
    if other_manager:  # as AReaL does
        for logger in (logging.getLogger("hpack.hpack"), logging.getLogger("hpack.table")):
            monkeypatch.setattr(logger, "filters", [])
        monkeypatch.setattr(logging.Logger, "manager", logging.Manager(logging.RootLogger(logging.WARNING)))
    answers, connections = ask(tmp_path, monkeypatch, lambda prompt: "answer", 64)
    assert len(answers) == 64
    assert connections <= 16  # one for each request at a time, used again
    assert "planted" not in caplog.text


@pytest.mark.parametrize("fault", ["reset", "leave", "hang", "twice"])
def test_what_breaks_a_stream_or_a_connection_is_asked_again(fault, tmp_path, monkeypatch):
    rng = random.Random(3)
    answers, _ = ask(tmp_path, monkeypatch, lambda prompt: rng.choice([fault] + ["answer"] * 15), 64)
    assert ['"fluent": true' in answer.text for answer in answers] == [one % 2 == 0 for one in range(64)]
    assert max(answer.requests for answer in answers) > 1
