"""The doctor's check of a judge: it names the models, has a remedy for each problem, and shows no key."""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from pv_judge import endpoint_check
from pv_judge.endpoint_check import JUDGE_KEY, JUDGE_URL, check_endpoint
from pv_rl.hookspecs import Finding

KEY = "sk-secret-of-the-judge"


class Judge(BaseHTTPRequestHandler):
    """The part of an OpenAI-compatible server that lists models, for those who have the key."""

    def do_GET(self):
        known = self.headers.get("Authorization") == f"Bearer {KEY}"
        status, body = (200, {"data": [{"id": "judge-v3"}]}) if known else (401, {"error": "who are you"})
        if self.path == "/echo/models":
            status, body = 200, {"data": [{"id": KEY}, {"id": KEY.replace("-", "%2D")}]}
        if self.path == "/html/models":
            status, body = 200, "a page"
        if self.path == "/slow/models":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):  # a byte now and then, so that no single read times out
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.3)
            return
        if self.path not in ("/v1/models", "/html/models", "/echo/models"):
            status, body = 404, {}
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()


def judge(monkeypatch, url: str | None, key: str | None = KEY) -> Finding:
    for name, value in ((JUDGE_URL, url), (JUDGE_KEY, key)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    return check_endpoint()


def test_a_judge_that_answers_is_named_with_its_models(monkeypatch, server):
    finding = judge(monkeypatch, f"{server}/v1/")
    assert finding.state == "ok"
    assert "judge-v3" in finding.text


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY} "])
def test_blanks_around_a_key_from_a_file_do_not_matter(monkeypatch, server, key):
    assert judge(monkeypatch, f"{server}/v1", key).state == "ok"


@pytest.mark.parametrize("key", ["sk-secret\nsecret", "sk-sécret-secret", "sk-secret\x00"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(monkeypatch, server, key):
    # An environment cannot hold a NUL, so the variable is read through a stand-in.
    monkeypatch.setattr(endpoint_check.os, "environ", {JUDGE_URL: f"{server}/v1", JUDGE_KEY: key})
    finding = check_endpoint()
    assert finding.state == "wrong"
    assert "secret" not in finding.text + finding.remedy


def test_a_password_in_the_address_is_not_shown(monkeypatch, server):
    address = server.replace("//", "//user:hunter2@") + "/v1?api_key=hunter2"
    assert "hunter2" not in judge(monkeypatch, address).text
    assert "hunter2" not in judge(monkeypatch, address.replace("/v1?", "/v2?")).text


def test_a_server_that_echoes_the_key_does_not_make_it_show(monkeypatch, server, caplog):
    caplog.set_level(logging.DEBUG)
    finding = judge(monkeypatch, f"{server}/echo")
    assert finding.state == "ok"
    assert "secret" not in finding.text + caplog.text


def test_a_judge_that_drips_is_given_up(monkeypatch, server):
    clock = itertools.count(step=4)  # each look at it is four seconds later
    monkeypatch.setattr(endpoint_check, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    finding = judge(monkeypatch, f"{server}/slow")
    assert finding.state == "wrong"
    assert "ReadTimeout" in finding.text


def test_no_judge_is_fine(monkeypatch):
    assert judge(monkeypatch, None).state == "ok"


@pytest.mark.parametrize(
    ("path", "key", "text"),
    [
        ("/v1", "wrong-key-too-secret", "401"),
        ("/v1", None, "401"),
        ("/v2", KEY, "404"),
        ("/html", KEY, "TypeError"),
    ],
)
def test_a_judge_that_does_not_serve_us_is_wrong_with_a_remedy_and_no_key(
    monkeypatch, server, path, key, text
):
    finding = judge(monkeypatch, server + path, key)
    assert finding.state == "wrong"
    assert text in finding.text
    assert finding.remedy
    assert "secret" not in finding.text + finding.remedy


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "not a url", "ftp://127.0.0.1/v1"])
def test_a_judge_that_cannot_be_reached_is_wrong(monkeypatch, url):
    assert judge(monkeypatch, url).state == "wrong"
