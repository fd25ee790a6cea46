"""The doctor: each check is one line, what is wrong has a remedy, and no key is shown."""

from __future__ import annotations

import itertools
import json
import logging
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from pv_rl import doctor

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


def judge(monkeypatch, url: str | None, key: str | None = KEY) -> doctor.Finding:
    for name, value in ((doctor.JUDGE_URL, url), (doctor.JUDGE_KEY, key)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    return doctor._judge()


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
    monkeypatch.setattr(doctor.os, "environ", {doctor.JUDGE_URL: f"{server}/v1", doctor.JUDGE_KEY: key})
    finding = doctor._judge()
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
    monkeypatch.setattr(doctor, "time", SimpleNamespace(monotonic=lambda: next(clock)))
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


def test_a_plugin_that_is_left_out_is_a_note_that_names_it():
    state = {"loaded": True, "problem": "", "modes": ["grpo"], "rewards": ["verdict"], "left_out": []}
    assert doctor._adapter_finding(state, "this process").state == "ok"
    finding = doctor._adapter_finding(state | {"left_out": ["theirs: it failed to load"]}, "this process")
    assert finding.state == "note"
    assert "left out: theirs: it failed to load" in finding.text
    assert finding.remedy


def test_a_check_that_breaks_down_is_a_finding():
    def _odd_check() -> doctor.Finding:
        raise ZeroDivisionError("by nobody")

    finding = doctor._guarded(_odd_check)
    assert finding.state == "wrong"
    assert "ZeroDivisionError: by nobody" in finding.text


def test_a_missing_package_is_named_without_a_traceback():
    def _broken() -> doctor.Finding:
        import no_such_package  # noqa: F401  # pyright: ignore[reportMissingImports]

        raise AssertionError

    assert doctor._guarded(_broken).text == "no_such_package is missing"


def run_doctor(**env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pv_rl.cli", "doctor"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **env})


@pytest.mark.parametrize(
    ("override", "state", "text"),
    [
        ("recipe=dapo", "ok", "run=8b composes with verl's ppo_trainer, dapo@prompt"),
        (
            "actor_rollout_ref.actor.loss_agg_mode=dr_grpo:480",
            "note",
            "the mass of an update is 3.33 to 33.3",
        ),
        ("actor_rollout_ref.rollout.n=1", "wrong", "Set actor_rollout_ref.rollout.n to 2 or more"),
        ("actor_rollout_ref.model.use_remove_padding=false", "wrong", "verl refuses this config"),
    ],
)
def test_the_config_of_a_run_is_checked_where_one_is_named(override, state, text):
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    finding = doctor._guarded(lambda: doctor._config(["run=8b", "judge=rules", override]))
    assert finding.state == state
    assert text in finding.text


@pytest.mark.slow
def test_the_doctor_finds_this_environment_well():
    pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install 'pv-rl[quickstart]'")
    done = run_doctor(VERL_PLATFORM="cpu")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lines) == 10
    assert lines[-1] == "This environment will work."
    worker = next(line for line in lines if line.startswith("ok    worker"))
    assert (
        "modes grpo, dapo, balanced, dr_grpo, vl_norm; rewards verdict, verdict_fluency, weighted" in worker
    )


@pytest.mark.slow
def test_the_doctor_says_that_plugins_are_off_and_how_to_turn_them_on():
    pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
    done = run_doctor(VERL_USE_EXTERNAL_PLUGINS="none", VERL_PLATFORM="cpu")
    assert done.returncode == 1
    wrong = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    assert {line.split()[1] for line in wrong} == {"driver", "worker"}
    assert all("Remedy: unset VERL_USE_EXTERNAL_PLUGINS" in line for line in wrong), done.stdout
