"""Server program of `pv_cpu.forks`: `python server.py DESCRIPTOR`.

It imports torch and other libraries at once, and Ray and verl in the environment of the first worker. It runs no
computation and no thread of Python, so forking it is safe. It ends with the driver. It must not import `pv_cpu`
before the first worker, since that imports Ray.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

# fmt: off
LIBRARIES = (
    "torch", "torch.distributed.fsdp", "torch.utils.checkpoint", "tensordict", "omegaconf", "hydra", "aiohttp", "zmq",
    "transformers.modeling_utils", "transformers.models.auto.modeling_auto", "datasets", "peft", "fastapi", "uvicorn",
)
"""What the workers import beside Ray and verl."""
MODULES = (
    "verl.trainer.main_ppo", "verl.trainer.ppo.v1", "verl.workers.engine_workers", "verl.experimental.agent_loop",
    "verl.workers.engine.fsdp.transformer_impl", "verl.experimental.reward_loop", "transfer_queue",
    "pv_cpu.rollout.server", "ray._private.workers", "ray._private.runtime_env.setup_hook", "uvloop",
)
"""What the workers import with Ray."""
# fmt: on
OF_RAY = ("RAY_JOB_ID", "RAY_RAYLET_PID")
"""What Ray's core reads once in a process: a worker of another job or another raylet cannot be a fork."""


def main(number: str) -> None:
    """Serve the socket with this descriptor until the driver, which holds the other end of stdin, is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the workers
    listener = socket.socket(fileno=int(number))
    load(LIBRARIES)
    first: dict[str, str] = {}
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready and not os.read(0, 1):
            return
        if listener in ready:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError, ValueError):  # the client then starts a Python
                answer(connection, listener, first)


def answer(connection: socket.socket, listener: socket.socket, first: dict[str, str]) -> None:
    """Fork a worker for a client and answer with its process id.

    Args:
        connection: with the client.
        listener: which the fork closes.
        first: environment of the first worker; filled by the first call.
    """
    request, descriptors = receive(connection)
    try:
        if not first:
            first.update(request["env"])
            os.environ.update(first)
            with no_ids_of_ray():
                load(MODULES)
        if any(first.get(name) != request["env"].get(name) for name in OF_RAY):
            return
        worker = os.fork()
        if worker == 0:
            listener.close()
            connection.close()
            become(request, descriptors)
        connection.sendall(b"%d\n" % worker)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def load(modules: Iterable[str]) -> None:
    """Import modules. One that another version does not have is left out: the worker imports what it needs."""
    for module in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()  # the forks share these pages: a collection would copy them


@contextlib.contextmanager
def no_ids_of_ray() -> Iterator[None]:
    """Keep Ray's core from drawing random ids in the block.

    Ray seeds its generator when it draws the first id, and a fork has a copy of it. Two workers would then draw the
    same ids, and an actor that gets two tasks with one id dies ("Check failed: erased == 1"). Of what imports do, only
    `@ray.remote` on a class draws an id (ray/actor.py of Ray 2.60).
    """
    try:
        actor: Any = importlib.import_module("ray.actor")
        ids = actor.ActorClassID
    except (ImportError, AttributeError):  # of another version of Ray
        yield
        return
    actor.ActorClassID = type("ActorClassID", (ids,), {"from_random": lambda: ids(os.urandom(ids.size()))})
    try:
        yield
    finally:
        actor.ActorClassID = ids


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """One request: a JSON line with argv, environment and folder, and the descriptors of stdout and stderr."""
    _, uid, _ = array.array("I", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if uid != os.getuid():
        raise ValueError(f"from user {uid}")
    connection.settimeout(10)
    text, descriptors, _, _ = socket.recv_fds(connection, 65536, 2)
    while not text.endswith(b"\n"):
        more = connection.recv(65536)
        if not more:
            raise ValueError("it ends in the middle")
        text += more
    request = json.loads(text)
    if not isinstance(request, dict) or request.keys() != {"argv", "env", "cwd"}:
        raise ValueError("it is no request of the client")
    return request, descriptors


def become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Turn this fork into the process that the client was to be: `python SCRIPT ARGUMENTS`."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()  # Ray may end the process group of a worker
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), *descriptors)):
            os.dup2(descriptor, number)
            if descriptor > 2:
                os.close(descriptor)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        reseed()
        sys.argv = request["argv"]
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001  (an interpreter prints whatever ends its script)
        sys.excepthook(*sys.exc_info())
    finally:
        leave(code)


def reseed() -> None:
    """Give this fork random numbers of its own, as a new process has. Python's `random` does so by itself."""
    import numpy
    import torch

    numpy.random.seed()
    torch.seed()


def leave(code: int) -> NoReturn:
    """End as an interpreter ends, without returning into the server's frames."""
    with contextlib.suppress(BaseException):
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[2])
