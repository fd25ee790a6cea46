"""Process tree: runs a child process, and ends all processes that it started."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

__all__ = ["NO_TELEMETRY", "in_loop", "interruptible", "process_tree"]

NO_TELEMETRY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",  # vLLM, mlflow and others
}
"""Environment of every process that we start, unless the user has set a variable: nobody is told of a run."""

PATIENCE = 10.0
"""Seconds that a process gets to end by itself."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def process_tree(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    pass_fds: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` with its output in `log`. However the block ends, it ends the whole tree.

    Ray's daemons leave the process group, some rename themselves and some outlive their parents. So the tree is found
    in three ways: descendants, session, and a mark in the environment. A second Ctrl-C while they end kills them at
    once. If this process itself is killed, Linux interrupts the child.
    """
    mark = f"pv-rl-{os.getpid()}-{log.resolve()}"
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            env={**NO_TELEMETRY, **env, "PV_RL_PROCESS_TREE": mark},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=pass_fds,
            start_new_session=True,  # Ctrl-C in the terminal reaches this process only, which ends the tree in order
            preexec_fn=_in_child,
        )
    try:
        yield child
    finally:
        with _handled(SIGNALS) as hurry:
            _end(child, mark, hurry)


def _in_child() -> None:
    # A process that a shell started in the background ignores SIGINT; the child would inherit that, and Ray stay.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        pr_set_pdeathsig = 1  # linux/prctl.h: the signal that we get when our parent dies
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGINT)


def _end(child: subprocess.Popen[bytes], mark: str, hurry: threading.Event) -> None:
    tree = [*_descendants(child.pid), *_members(child.pid, mark)]
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        _wait(lambda: child.poll() is not None, hurry)
        child.kill()
    child.wait()
    _wait(lambda: not psutil.wait_procs(tree, timeout=0)[1], hurry)
    for process in {*psutil.wait_procs(tree, timeout=0)[1], *_members(child.pid, mark)}:
        with contextlib.suppress(psutil.Error):
            process.kill()
    _wait(lambda: not list(_members(child.pid, mark)), threading.Event())


def _wait(done: Callable[[], bool], hurry: threading.Event) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done() and not hurry.is_set() and time.monotonic() < deadline:
        time.sleep(0.1)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _members(session: int, mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE and (
                os.getsid(process.pid) == session or process.environ().get("PV_RL_PROCESS_TREE") == mark
            ):
                yield process


@contextlib.contextmanager
def _handled(
    numbers: Iterable[signal.Signals], handler: Callable[[], object] | None = None
) -> Iterator[threading.Event]:
    """Handle signals within the block; by default a signal sets the yielded event."""
    event = threading.Event()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {n: signal.signal(n, lambda *_: (handler or event.set)()) for n in numbers}
    try:
        yield event
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _interrupt() -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """End the block on SIGTERM and SIGHUP (a closed terminal) as on Ctrl-C, so that clean-up runs."""
    with _handled((signal.SIGTERM, signal.SIGHUP), _interrupt):
        yield


@contextlib.contextmanager
def in_loop(numbers: Iterable[signal.Signals], act: Callable[[], object]) -> Iterator[None]:
    """Let the running event loop call `act` for signals within the block, in the main thread; else nothing changes."""
    loop, before = asyncio.get_running_loop(), {}
    with contextlib.suppress(
        RuntimeError, ValueError, NotImplementedError
    ):  # not the main thread, or no Unix
        for number in numbers:
            handler = signal.getsignal(number)
            loop.add_signal_handler(number, act)
            before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)  # this alone would leave the default handler
            signal.signal(number, handler)
