"""Network guard of the tests: no connection and no name look-up leaves this machine.

An audit hook sees every socket of Python code, in the test's process and, by `sitecustomize.py` beside this file, in
its child processes. What leaves the machine raises, and is written to the file that `PV_RL_TEST_CONNECTIONS` names, so
that the test fails also where the code under test handles the error. Names ending in `.invalid` (RFC 6761) raise only.
Sockets of C++ code (Ray's servers) are not seen: `make test-offline` runs the suite without any network.
"""

from __future__ import annotations

import errno
import functools
import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import Any

__all__ = ["LOG", "attempts", "install"]

LOG = "PV_RL_TEST_CONNECTIONS"
RAY = "/ray/dashboard/"
"""Programs that ask for the metadata of a cloud machine at their start. That is refused and not recorded."""
ADDRESS_OF = {
    "socket.connect": lambda made, address: "" if made.type == socket.SOCK_DGRAM else _host(address),
    "socket.sendto": lambda made, address: _host(address),
    "socket.sendmsg": lambda made, address: _host(address),
    "socket.getaddrinfo": lambda host, *_: host,
    "socket.gethostbyname": lambda host: host,
}
"""The host of an event. A UDP socket that connects sends nothing: Ray and others learn their own address so."""


def install() -> None:
    """Start to guard this process, for as long as it lives."""
    sys.addaudithook(_check)


def attempts(log: Path) -> list[str]:
    """What was tried since the last call."""
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8").splitlines()
    log.unlink()
    return lines


def _check(event: str, given: tuple[Any, ...]) -> None:
    if event not in ADDRESS_OF:
        return
    host = ADDRESS_OF[event](*given)
    host = host.decode() if isinstance(host, bytes) else str(host or "")
    if _is_here(host):
        return
    text = f"{event} of {host}: the tests may only reach this machine (tests/support/network_guard.py)"
    if LOG in os.environ and not host.rstrip(".").endswith(".invalid") and RAY not in sys.argv[0]:
        with open(os.environ[LOG], "a", encoding="utf-8") as file:
            file.write(f"{text}, by {' '.join(sys.argv)[:200]!r}\n")
    raise OSError(errno.ENETUNREACH, text)


def _host(address: Any) -> str:
    return str(address[0]) if isinstance(address, tuple) else ""  # else a Unix socket's path


@functools.cache
def _is_here(host: str) -> bool:
    if host in ("", "localhost", "localhost.localdomain", "<broadcast>", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False  # a name
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as own:
            own.bind((host, 0))  # only an address of this machine can be bound
    except OSError:
        return False
    return True
