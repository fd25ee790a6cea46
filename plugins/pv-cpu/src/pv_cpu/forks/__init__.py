"""Fork server for Ray's workers: one process imports torch and verl, and the workers are its forks.

A run on a CPU has about nine processes, and each would take 6 s of processor time to import torch and verl. The driver
starts the server when verl is imported. Ray's `py_executable` is then `client.py`, which asks the server for a process
with its own arguments, environment, folder and output. Whatever goes wrong there, the client starts a Python of its
own as Ray would.
"""

from __future__ import annotations

import os
import secrets
import shlex
import socket
import subprocess
import sys
from pathlib import Path

__all__ = ["VARIABLE", "executable", "start"]

VARIABLE = "PV_CPU_FORK_WORKERS"
"""`0` lets Ray start each worker by itself."""
FOLDER = Path(__file__).parent
RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
"""Runs a file without this package, which would import Ray, and without its folder on the path."""

_server: tuple[subprocess.Popen[bytes], str] | None = None


def start() -> str | None:
    """Start the server once in this process.

    Returns:
        The name of its socket; None on other systems than Linux, if the user wants no server, or if it has ended.
    """
    global _server
    if sys.platform != "linux" or os.environ.get(VARIABLE, "1").strip() == "0":
        return None
    if _server is None:
        # An abstract socket leaves no file behind; the server refuses other users. It listens from now on, so that a
        # client waits while the server imports.
        name = f"pv-cpu-{secrets.token_hex(16)}"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0{name}")
            listener.listen(64)
            number = listener.fileno()
            command = [sys.executable, "-W", "ignore", "-c", RUN, str(FOLDER / "server.py"), str(number)]
            # Its own session: a signal for the driver's group ends it by way of the pipe, after the driver.
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, pass_fds=[number], start_new_session=True
            )
        _server = child, name
    child, name = _server
    return name if child.poll() is None else None


def executable() -> str | None:
    """The value of Ray's `py_executable`; None where there is no server."""
    name = start()
    return name and shlex.join([sys.executable, "-I", "-S", str(FOLDER / "client.py"), name, sys.executable])
