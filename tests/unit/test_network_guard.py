"""The guard of the tests' network: what leaves this machine fails and is written down, here and in child processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import httpx
import pytest
from network_guard import LOG, attempts


def udp(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", (host, 9))


@pytest.mark.parametrize(
    ("reach", "host"),
    [
        (lambda: socket.create_connection(("198.51.100.7", 80), timeout=1), "198.51.100.7"),
        (lambda: socket.create_connection(("2001:db8::1", 80), timeout=1), "2001:db8::1"),
        (lambda: socket.getaddrinfo("python.org", 443), "python.org"),
        (lambda: socket.gethostbyname("python.org"), "python.org"),
        (lambda: urllib.request.urlopen("http://198.51.100.7/", timeout=1), "198.51.100.7"),
        (lambda: httpx.get("https://huggingface.co", timeout=1, trust_env=False), "huggingface.co"),
        (lambda: udp("198.51.100.7"), "198.51.100.7"),
    ],
)
def test_what_leaves_this_machine_fails_with_the_address(reach, host):
    with pytest.raises((OSError, httpx.ConnectError), match=r"tests may only reach this machine"):
        reach()
    assert host in attempts(Path(os.environ[LOG]))[0]


def test_a_child_process_is_guarded_too():
    code = "import urllib.request as r\ntry: r.urlopen('http://python.org', timeout=1)\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
    (line,) = attempts(Path(os.environ[LOG]))
    assert line.startswith("socket.getaddrinfo of python.org")


def test_this_machine_can_be_reached_by_all_its_names(tmp_path):
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as local:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(server.getsockname()).close()
        local.bind(str(tmp_path / "s"))
        local.listen()
        socket.socket(socket.AF_UNIX).connect(str(tmp_path / "s"))
    for host in ("localhost", "::1", "127.0.0.2", socket.gethostname()):
        socket.getaddrinfo(host, 80)
    with pytest.raises(OSError, match="may only reach"):
        socket.getaddrinfo("judge.invalid", 80)  # for tests of what cannot be reached
    assert attempts(Path(os.environ[LOG])) == []
