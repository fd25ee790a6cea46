"""A server of our own: it is waited for, its end is reported, and nothing of it is left."""

from __future__ import annotations

import sys
import time

import httpx
import psutil
import pytest

from pv_judge.local_server import free_port, running_server
from pv_rl.errors import SetupError

# Answers 500 to the first two looks, as a server that still loads its model; /end ends it.
SERVER = """
import http.server, os, sys
looks = []
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        looks.append(self.path)
        if self.path == "/end":
            os._exit(7)
        self.send_response(200 if len(looks) > 2 and self.path == sys.argv[2] else 500)
        self.send_header("Content-Length", "0")
        self.end_headers()
print("loading", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_it_is_asked_once_it_is_ready_and_leaves_no_process(tmp_path):
    port, log = free_port(), tmp_path / "logs" / "server.log"
    command = [sys.executable, "-c", SERVER, str(port), "/health"]
    before = set(psutil.Process().children())  # a fork server or Ray, of other tests
    with running_server(command, port=port, log=log, ready="/health") as ended:
        (server,) = set(psutil.Process().children()) - before
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        assert ended() == ""
    assert not psutil.wait_procs([server], timeout=5)[1]
    assert log.read_text().startswith("loading")


def test_a_server_that_ends_says_why_and_one_that_is_never_ready_is_given_up(tmp_path):
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-c", SERVER, str(port), "/v1/models"]
    with running_server(command, port=port, log=log) as ended:
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/end", trust_env=False)
        deadline = time.monotonic() + 10
        while not ended() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ended().startswith(f"the server ended by itself, with 7; its log {log} ends with\nloading")
    with (
        pytest.raises(SetupError, match="did not come up within 1 s"),
        running_server(command, port=port, log=log, ready="/health", start_s=1),
    ):
        pass
