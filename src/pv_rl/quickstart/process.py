"""A child process with all that it starts: run it, and leave nothing of it behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

__all__ = ["interruptible", "process_tree"]

PATIENCE = 10.0
"""Seconds that a process gets to end in its own way."""


@contextlib.contextmanager
def process_tree(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` with its output in `log`; when the block ends, however it ends, the whole tree is gone.

    Ray's daemons put themselves in sessions of their own, so signalling the process group is not enough: the
    descendants are looked up while their parents still live, and again by the log folder's mark in their
    environment for any whose parent died first.
    """
    mark = f"pv-rl-{os.getpid()}-{log.resolve()}"
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env={**env, "PV_RL_PROCESS_TREE": mark},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal reaches us alone, and we end the tree in order
        )
    try:
        yield child
    finally:
        _end(child, mark)


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    # A run that ends by itself takes Ray down with it; give its daemons the time before looking for them.
    tree = _descendants(child.pid)
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE)
        if child.poll() is None:
            child.kill()
    _, alive = psutil.wait_procs(tree, timeout=PATIENCE)
    for process in {*alive, *_marked(mark)}:
        with contextlib.suppress(psutil.Error):
            process.kill()
    child.wait()
    psutil.wait_procs(list(_marked(mark)), timeout=PATIENCE)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get("PV_RL_PROCESS_TREE") == mark:
                yield process


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP (a closed terminal) end the block like Ctrl-C, so that clean-up runs."""

    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
