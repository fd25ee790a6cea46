"""Local model server: starts a command, waits until it answers, and ends it with every process that it started."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import httpx

from pv_judge.processes import interruptible, process_tree
from pv_rl.errors import SetupError

__all__ = ["START_S", "free_port", "running_server"]

START_S = 900.0
"""Seconds that a server may take to start: it reads, compiles and warms up a large model."""
TAIL = 2000
"""Characters of a log that an error shows."""


def free_port() -> int:
    """A TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def running_server(
    command: Sequence[str],
    *,
    port: int,
    log: Path,
    env: Mapping[str, str] | None = None,
    ready: str = "/v1/models",
    start_s: float = START_S,
) -> Iterator[Callable[[], str]]:
    """Run a server until the block ends; however the block ends, the server and its processes are gone.

    Example:

        port = free_port()
        with running_server(["vllm", "serve", "MODEL", "--port", str(port)], port=port, log=Path("server.log")):
            ...  # ask http://127.0.0.1:PORT/v1

    Args:
        command: of the server, which listens on 127.0.0.1.
        port: the port that the command names.
        log: file to which the server's output is appended. It is kept.
        env: variables of the server's environment, added to those of this process.
        ready: path that answers 200 once the server can be asked. `transformers serve` needs `/health`: its
            `/v1/models` answers 500 where there is no hub cache.
        start_s: seconds until the server has to be ready.

    Yields:
        A function that says why the server has ended; it returns an empty text while the server runs.

    Raises:
        SetupError: the server ended or was not ready in time. The text has the end of its log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, **(env or {})}
    with interruptible(), process_tree(command, env=variables, cwd=log.parent, log=log) as child:

        def ended() -> str:
            if child.poll() is None:
                return ""
            return f"the server ended by itself, with {child.returncode}; {_tail(log)}"

        _wait(f"http://127.0.0.1:{port}{ready}", ended, log, start_s)
        yield ended


def _wait(url: str, ended: Callable[[], str], log: Path, start_s: float) -> None:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline:
        if why := ended():
            raise SetupError(why)
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                return
        time.sleep(0.2)
    raise SetupError(f"the server did not come up within {start_s:g} s; {_tail(log)}")


def _tail(log: Path) -> str:
    text = log.read_bytes()[-TAIL:].decode("utf-8", "replace")
    shown = "".join(one if one.isprintable() or one == "\n" else "?" for one in text)
    return f"its log {log} ends with\n{shown}"
