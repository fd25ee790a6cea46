"""What follows from the sentinel's alarms."""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pv_rl.errors import ConfigError
from pv_runs.sentinel import AlarmPolicy, AlarmPolicyConfig, Watcher

LIMITS = {"missing_verdicts": (None, 0.5), "veto_rate": (None, 0.5)}
NO_VERDICT, VETOED = "pv_rl/reward/verdict_missing", "pv_rl/reward/vetoed"


def make(tmp_path, **given) -> AlarmPolicy:
    """A guard that alarms where one of two shares passes a half."""
    config = AlarmPolicyConfig.read({"watch": {"limits": LIMITS}, **given})
    return AlarmPolicy(config, Watcher(config.watching(128)), tmp_path / "run" / "sentinel.jsonl")


def told(guard: AlarmPolicy) -> list[dict]:
    return [json.loads(line) for line in guard.file.read_text().splitlines()]


def test_an_alarm_is_told_in_the_log_the_file_and_the_stream(tmp_path, caplog):
    guard = make(tmp_path)
    assert guard.observe(1, {NO_VERDICT: 0.1})["pv_rl/sentinel/alarms"] == 0
    assert guard.observe(2, {NO_VERDICT: 0.9})["pv_rl/sentinel/alarms"] == 1
    assert guard.take() is None
    (event,) = told(guard)
    assert (event["event"], event["sign"], event["step"]) == ("alarm", "missing_verdicts", 2)
    assert event["message"] in caplog.text


def test_an_action_waits_for_a_second_sign_within_the_window(tmp_path):
    guard = make(tmp_path, action="stop", within=3)
    guard.observe(1, {NO_VERDICT: 0.9, VETOED: 0.1})
    assert guard.take() is None
    for step in (2, 3):
        guard.observe(step, {NO_VERDICT: 0.9, VETOED: 0.1})
    guard.observe(4, {NO_VERDICT: 0.1, VETOED: 0.9})  # three steps after the first: too late
    assert guard.take() is None
    guard.observe(5, {NO_VERDICT: 0.9, VETOED: 0.9})
    due = guard.take()
    assert (due.action, due.since) == ("stop", 4)
    assert "vetoed" in due.reason
    assert "without a verdict" in due.reason
    assert guard.take() is None


def test_signs_of_one_family_are_one_piece_of_evidence(tmp_path):
    limits = {"missing_verdicts": (None, 0.5), "cut_off": (None, 0.5)}
    guard = make(tmp_path, action="stop", watch={"limits": limits})
    guard.observe(1, {NO_VERDICT: 0.9, "response_length/clip_ratio": 0.9})
    assert len(told(guard)) == 2
    assert guard.take() is None


def test_what_is_told_while_it_waits_after_an_action_is_no_evidence_later(tmp_path):
    guard = make(tmp_path, action="checkpoint", within=4)
    guard.observe(1, {NO_VERDICT: 0.9, VETOED: 0.9})
    assert guard.take() is not None
    guard.observe(2, {NO_VERDICT: 0.1, VETOED: 0.1})
    guard.observe(4, {NO_VERDICT: 0.9, VETOED: 0.1})  # told, in the quiet time
    guard.observe(5, {NO_VERDICT: 0.9, VETOED: 0.9})
    assert len(told(guard)) == 4
    assert guard.take() is None


def test_after_a_rollback_it_knows_what_was_known_of_the_older_policy(tmp_path):
    guard = make(tmp_path, action="rollback")
    lengths = "pv_rl/response_length/verdict_true"
    for step in range(1, 31):
        guard.observe(step, {lengths: 40.0 + step % 3})
    known = json.loads(json.dumps(guard.state()))
    for step in range(31, 36):
        guard.observe(step, {lengths: 5.0})
    assert any(event["sign"] == "length_accepting" for event in told(guard))
    before = len(told(guard))
    guard.went_back(20, 35, known)
    for step in range(36, 50):
        guard.observe(step, {lengths: 40.0 + step % 3})
    assert len(told(guard)) == before
    assert guard.rolled_back


def test_a_line_without_any_sign_is_none_of_a_step(tmp_path):
    guard = make(tmp_path)
    assert guard.observe(1, {"timing_s/step": 3.0}) == {}
    assert guard.observe(1, {NO_VERDICT: 0.9})["pv_rl/sentinel/alarms"] == 1


def test_signs_that_a_run_never_shows_are_named_once(tmp_path, caplog):
    guard = make(tmp_path)
    for step in range(1, 15):
        guard.observe(step, {NO_VERDICT: 0.1})
    assert caplog.text.count("cannot be watched") == 1
    assert "veto_rate" in caplog.text
    assert "pv_rl/reward/vetoed" in caplog.text


def test_no_second_action_follows_at_once(tmp_path):
    guard = make(tmp_path, action="checkpoint", agree=1, within=3)
    taken = []
    for step in range(1, 9):
        guard.observe(step, {NO_VERDICT: 0.9 if step % 2 else 0.1})  # crosses at 1, 3, 5, 7
        taken.append(guard.take() is not None)
    assert taken == [True, False, False, False, True, False, False, False]


def test_a_rollback_is_done_once_and_then_the_run_stops(tmp_path):
    guard = make(tmp_path, action="rollback", agree=1, within=1)
    guard.observe(1, {NO_VERDICT: 0.9})
    assert guard.take().action == "rollback"
    guard.rolled_back = True
    again = make(tmp_path, action="rollback", agree=1, within=1)
    again.restore(json.loads(json.dumps(guard.state())))
    again.observe(2, {NO_VERDICT: 0.1})
    again.observe(3, {NO_VERDICT: 0.9})
    assert again.take().action == "stop"


def test_steps_before_the_first_and_a_second_line_of_a_step_are_not_looked_at(tmp_path):
    guard = make(tmp_path, from_step=3)
    for step in (0, 1, 2):
        assert guard.observe(step, {NO_VERDICT: 0.9}) == {}
    assert guard.observe(3, {NO_VERDICT: 0.9})["pv_rl/sentinel/alarms"] == 1
    assert guard.observe(3, {NO_VERDICT: 0.9}) == {}


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path, caplog):
    (tmp_path / "run").write_text("a file where the folder should be")
    guard = make(tmp_path)
    guard.observe(1, {NO_VERDICT: 0.9})
    assert "sentinel.jsonl cannot be written" in caplog.text


@pytest.fixture(params=[500, 302])
def hook(monkeypatch, request):
    """A server that keeps what it is sent and answers with an error or a redirect; its address in the environment."""
    got, answered = [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(request.param)
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()
            answered.set()

        def do_GET(self):  # what a client that follows the redirect sends
            got.append(self.path)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PV_RL_WEBHOOK", f"http://127.0.0.1:{server.server_port}/hook?key=PLANTED")
    yield got, answered, request.param
    server.shutdown()
    server.server_close()


def test_the_webhook_gets_the_alarm_and_its_address_is_told_nowhere(tmp_path, caplog, hook):
    got, answered, status = hook
    caplog.set_level(logging.DEBUG)
    guard = make(tmp_path)
    guard.observe(1, {NO_VERDICT: 0.9})
    assert answered.wait(10)
    for thread in threading.enumerate():
        if thread.name.endswith("(_post)"):
            thread.join(10)
    assert [event["sign"] for event in got] == ["missing_verdicts"]  # a redirect is not followed
    assert f"the webhook answered {status}" in caplog.text
    assert "PLANTED" not in caplog.text + guard.file.read_text() + repr(guard.config)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("log", r"set a key of it, for example \+sentinel\.action=log"),
        ({"action": "rolback"}, "Did you mean rollback"),
        ({"acton": "log"}, "Did you mean action"),
        ({"agree": 0}, "sentinel.agree is 0; give a whole number"),
        ({"within": True}, "sentinel.within is True"),
        ({"lr_factor": 0}, "sentinel.lr_factor is 0"),
        ({"lr_factor": True}, "sentinel.lr_factor is True"),
        ({"webhook_env": 3}, "sentinel.webhook_env is no text"),
    ],
)
def test_a_config_that_cannot_be_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        AlarmPolicyConfig.read(given)


def test_an_unknown_setting_of_the_statistics_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"sentinel\.watch\.warmup is no setting\. Did you mean warm_up"):
        AlarmPolicyConfig.read({"watch": {"warmup": 3}}).watching(8)


def test_settings_of_the_statistics_that_are_none_are_refused():
    with pytest.raises(ConfigError, match=r"sentinel\.watch is None; set keys of it"):
        AlarmPolicyConfig.read({"watch": None}).watching(8)


def test_a_webhook_that_is_no_url_is_refused_without_being_told(monkeypatch):
    monkeypatch.setenv("PV_RL_WEBHOOK", "PLANTED")
    with pytest.raises(ConfigError, match="PV_RL_WEBHOOK holds no URL") as caught:
        AlarmPolicyConfig.read({})
    assert "PLANTED" not in str(caught.value)
